/* 128-bit integers for exact products of 64-bit numbers. A compiler extension of gcc and clang. */
#pragma once

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
