/* Returns NULL, or why the driver cannot be used. *result is that of cuInit, -1 if there
   is no library, or -2 if it is no driver. */
const char *shim_open(const char *path, int *result);
/* Tells whether the driver has a symbol. */
int shim_has(const char *symbol);
