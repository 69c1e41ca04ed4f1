"""Functions whose rules the user wrote: custom_jvp, custom_vjp, custom_vmap."""
