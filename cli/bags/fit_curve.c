/* The learning curve. A part of the bags can lack what all have (a class, a column that varies):
 * then there is none, and that is said. */
#include "bags/fit.h"

#include <stdio.h>

fin_status fit_curve(fit_run *run, fin_error *err)
{
    double start = fit_clock();
    fin_error why = {FIN_OK, ""};
    fin_status status = fin_fit_curve(run->fit, run->bags, cli_progress(), run->size, &why);
    run->seconds_curve = fit_clock() - start;
    if (status == FIN_ERR_MEMORY || status == FIN_ERR_CANCELLED) {
        *err = why;
        return status;
    }
    if (status)
        snprintf(run->no_curve, sizeof run->no_curve, "%.150s", why.message);
    else
        run->sizes = FIN_CURVE_SIZES;
    return FIN_OK;
}
