"""How a call is computed: one file per backend, all held to the one slow definition."""
