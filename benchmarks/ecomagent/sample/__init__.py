"""The shipped shop: 640 products and more than 4,000 reviews over eight categories, invented for this project."""
