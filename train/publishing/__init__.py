"""Publishing a judge to a model hub: nothing private in it, rights checked first, one commit."""
