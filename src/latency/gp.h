/* Internals of the Gaussian process. Private to gp*.c. base/gp_model.h describes the model. */
#pragma once

#include "base/gp_model.h"
#include "latency/latency.h"

struct gp *gp_new(size_t d, size_t m);
/* Computes `inverse` and `weight` from the other members. Returns -1 if the matrix is not positive definite. */
int gp_prepare(struct gp *g, struct error *err);
/* Sets length, signal, trend and noise by maximum likelihood (gp_fit.c). */
int gp_fit(struct gp *g, unsigned steps, struct error *err);
