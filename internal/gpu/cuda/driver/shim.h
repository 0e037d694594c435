/* Returns NULL, or why the driver cannot be used. *result is that of cuInit, or -1. */
const char *shim_open(const char *path, int *result);
/* Tells whether the driver has a symbol. */
int shim_has(const char *symbol);
