// Debian's package libhiredis-dev.
#include <hiredis/hiredis.h>
#include <sys/eventfd.h>
