/* The vocabulary of all directories: the C library's types, memory, texts and files, and the parts of base/ that most
 * files use. Sources include this header instead of its parts; the other headers of base/ are included by name. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/order.h"
#include "base/text.h"
#include "base/timefmt.h"
