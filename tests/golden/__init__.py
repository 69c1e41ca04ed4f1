"""The golden corpus: jaxprs as JAX prints them, and minijax held against them."""
