"""The names of attributes: which details of a product tasks may ask for, and under which names catalogues keep them.

Lists and names are those of EComAgentBench's construction (facts of its format).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.ecomagent.wording import key_form

CANONICAL = (
    "Brand",
    "Color",
    "Material",
    "Style",
    "Size",
    "Special Feature",
    "Number of Items",
    "Age Range (Description)",
    "Item Form",
    "Hair Type",
    "Skin Type",
    "Scent",
    "Finish Type",
    "Product Benefits",
    "Material Feature",
    "Form Factor",
    "Connectivity Technology",
    "Connector Type",
    "Compatible Phone Models",
    "Compatible Devices",
    "Screen Size",
    "Pattern",
    "Mounting Type",
    "Shell Type",
    "Operating System",
    "RAM",
    "Hard Drive",
    "Processor",
    "Graphics Coprocessor",
    "Wireless Type",
    "Computer Memory Type",
    "Memory Storage Capacity",
    "Hardware Platform",
    "Lens Type",
    "Video Capture Resolution",
    "Water Resistance Level",
    "Power Source",
    "Recommended Uses For Product",
    "Ink Color",
    "Shape",
    "Sheet Size",
    "Closure",
    "Point Type",
)
ALIASES = {
    "Special features": "Special Feature",
    "Material Type": "Material",
    "Standing screen display size": "Screen Size",
    "Connectivity technologies": "Connectivity Technology",
    "Number Of Items": "Number of Items",
    "OS": "Operating System",
    "Ram Memory Installed Size": "RAM",
    "Wireless Communication Technology": "Wireless Type",
    "Processor Brand": "Processor",
}
PERSONA_KEYS = {
    "Brand": "brand_preference",
    "Color": "color_preference",
    "Material": "material_need",
    "Style": "style_preference",
    "Size": "size_preference",
    "Skin Type": "skin_type",
    "Hair Type": "hair_type",
    "Item Form": "form_preference",
    "Scent": "scent_preference",
    "Finish Type": "finish_preference",
    "Form Factor": "form_factor_preference",
    "Shell Type": "case_type_preference",
    "Compatible Devices": "device_compatibility",
    "Compatible Phone Models": "phone_model_compatibility",
    "Operating System": "os_preference",
    "RAM": "ram_requirement",
    "Hard Drive": "storage_preference",
    "Processor": "processor_preference",
    "Wireless Type": "wireless_preference",
    "Memory Storage Capacity": "storage_capacity_preference",
    "Lens Type": "lens_preference",
    "Water Resistance Level": "water_resistance_need",
    "Power Source": "power_source_preference",
    "price": "budget",
}
AVOID_KEY = "avoid_preferences"

_FORMS = {key_form(name): name for name in CANONICAL} | {key_form(alias): name for alias, name in ALIASES.items()}


def canonical(name: str) -> str:
    """The canonical name of an attribute, however a catalogue spells it; the name itself where none is known."""
    return _FORMS.get(key_form(name), name)


def persona_key(name: str) -> str:
    """Under which key a profile keeps a wish for the attribute."""
    return PERSONA_KEYS.get(name, "_".join(key_form(name)))


def named(details: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
    """(key, value) of the details that are this attribute: under its own name first, then under other names of it."""
    wanted = canonical(name)
    exact = [key for key in details if key == wanted]
    for key in [*exact, *(key for key in details if key not in exact and canonical(key) == wanted)]:
        if details[key].strip():
            yield key, details[key]
