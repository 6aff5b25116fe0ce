/* Numbers that formulas have in common. Each is the double that is nearest. */
#ifndef FINI_CONSTANTS_H
#define FINI_CONSTANTS_H

#define FINI_PI 3.14159265358979323846
#define FINI_TWO_PI 6.283185307179586
#define FINI_LOG_TWO_PI 1.8378770664093454836
#define FINI_TWO_OVER_ROOT_PI 1.1283791670955126 /* erf'(0) */
#define FINI_FOUR_OVER_PI 1.2732395447351628     /* its square */
#define FINI_ROOT_HALF 0.70710678118654752
#define FINI_NORMAL_0 0.39894228040143268 /* 1 / sqrt(2 pi), the normal density at 0 */

#endif
