/* SPDX-License-Identifier: Apache-2.0 */
/* seal/serve.h - vitrine-seal after its start: makes the CA, confines the process, serves until the keeper is gone */
#ifndef VITRINE_SEAL_SERVE_H
#define VITRINE_SEAL_SERVE_H

#include "base/err.h"

/* With the keeper on SEAL_KEEPER_FD. */
int seal_serve(struct err *e);

#endif
