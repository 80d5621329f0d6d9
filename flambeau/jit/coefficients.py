"""Coefficients of the polynomials, lowest power first: made by tests/jit/fit_polynomials.py.

A name ends in the format that it was rounded to: SINGLE and DOUBLE are the formats of the function's
own lanes; WIDENED means coefficients in double for a float32 result computed in double.
"""

from __future__ import annotations

# exp(r) = 1 + r + r² q(r), |r| <= ln 2 / 2; relative to exp(r): 2^-28.0
EXP_SINGLE = tuple(map(float.fromhex, (
    "0x1.0000000000000p-1", "0x1.5554a40000000p-3", "0x1.5556980000000p-5", "0x1.122f2a0000000p-7",
    "0x1.6b5c960000000p-10",
)))

# exp(r) = 1 + r + r² q(r), |r| <= ln 2 / 2; relative to exp(r): 2^-51.7
EXP_DOUBLE = tuple(map(float.fromhex, (
    "0x1.0000000000000p-1", "0x1.5555555555501p-3", "0x1.55555555534d6p-5", "0x1.111111112410bp-7",
    "0x1.6c16c17fd89e9p-10", "0x1.a01a00af2292dp-13", "0x1.a01994d6390b9p-16", "0x1.71e2a8c3ae4bap-19",
    "0x1.28bfa9c039a48p-22", "0x1.a2d9d4616cc95p-26",
)))

# exp(r) - 1 = r + r² q(r), |r| <= ln 2 / 2; relative to r: 2^-30.6
EXPM1_SINGLE = tuple(map(float.fromhex, (
    "0x1.0000000000000p-1", "0x1.5555560000000p-3", "0x1.5554f80000000p-5", "0x1.1110260000000p-7",
    "0x1.6d3e5c0000000p-10", "0x1.a1e2600000000p-13",
)))

# exp(r) - 1 = r + r² q(r), |r| <= ln 2 / 2; relative to r: 2^-59.5
EXPM1_DOUBLE = tuple(map(float.fromhex, (
    "0x1.0000000000000p-1", "0x1.5555555555559p-3", "0x1.5555555555556p-5", "0x1.111111110f625p-7",
    "0x1.6c16c16c15c7cp-10", "0x1.a01a01b014a43p-13", "0x1.a01a01a01420ep-16", "0x1.71ddf80aa04a4p-19",
    "0x1.27e509ed356d9p-22", "0x1.af5ef8c09d442p-26", "0x1.1ef176ad25c95p-29",
)))

# 2^r = 1 + r q(r), |r| <= 1/2; relative to 1: 2^-27.4
EXP2_SINGLE = tuple(map(float.fromhex, (
    "0x1.62e4300000000p-1", "0x1.ebfbd80000000p-3", "0x1.c6afa20000000p-5", "0x1.3b300e0000000p-7",
    "0x1.5ef8960000000p-10", "0x1.3fec280000000p-13",
)))

# 2^r = 1 + r q(r), |r| <= 1/2; relative to 1: 2^-53.4
EXP2_DOUBLE = tuple(map(float.fromhex, (
    "0x1.62e42fefa39efp-1", "0x1.ebfbdff82c5a0p-3", "0x1.c6b08d704a154p-5", "0x1.3b2ab6fba055ep-7",
    "0x1.5d87fe7892650p-10", "0x1.4309130fc0a9ep-13", "0x1.ffcbfcddb28bcp-17", "0x1.62bfbdf214955p-20",
    "0x1.b523ce4c02794p-24", "0x1.e639744b903d8p-28", "0x1.eb9abfe4d6863p-32",
)))

# 2^r = 1 + r q(r), |r| <= 1/2; relative to 1: 2^-32.6
EXP2_WIDENED = tuple(map(float.fromhex, (
    "0x1.62e42fef7a4dep-1", "0x1.ebfbe04c83d72p-3", "0x1.c6b08d9ef446ap-5", "0x1.3b2a2161d6a97p-7",
    "0x1.5d864be9c6d60p-10", "0x1.443a26cd7799ap-13", "0x1.022eb1d008847p-16",
)))

# log(1+f) = f - f²/2 + f³ p(f), √½ <= 1+f <= √2; relative to f: 2^-29.7
LOG_SINGLE = tuple(map(float.fromhex, (
    "0x1.5555460000000p-2", "-0x1.ffffee0000000p-3", "0x1.99a5420000000p-3", "-0x1.5562e40000000p-3",
    "0x1.23330a0000000p-3", "-0x1.fb41dc0000000p-4", "0x1.e64e020000000p-4", "-0x1.e30a980000000p-4",
    "0x1.1b813c0000000p-4",
)))

# log((1+s)/(1-s)) = 2s + s z p(z), z = s², the same range; relative to 2s: 2^-59.5
LOG_RATIO_DOUBLE = tuple(map(float.fromhex, (
    "0x1.5555555555592p-1", "0x1.999999997ff03p-2", "0x1.24924941e35bcp-2", "0x1.c71c5212350eep-3",
    "0x1.74663d6f0be4ap-3", "0x1.39a1da245a563p-3", "0x1.2f045bb1fece4p-3",
)))

# log((1+s)/(1-s)) = 2s + 2/3 s z + s z² p(z); relative to 2s: 2^-73.5
LOG_RATIO_TAIL_DOUBLE = tuple(map(float.fromhex, (
    "0x1.9999999999996p-2", "0x1.2492492492f51p-2", "0x1.c71c71c5968bcp-3", "0x1.745d18295a8a1p-3",
    "0x1.3b1364c7a7ff8p-3", "0x1.11206f800205cp-3", "0x1.de3d60ea20d16p-4", "0x1.eac6541f27e8ep-4",
)))

# log((1+s)/(1-s)) = 2s + 2/3 s z + s z² p(z); relative to 2s: 2^-36.8
LOG_RATIO_TAIL_WIDENED = tuple(map(float.fromhex, (
    "0x1.9999ffc303549p-2", "0x1.24529533cd692p-2", "0x1.df9d85aa43a0cp-3",
)))

# sin(r) = r + r z p(z), z = r², |r| <= π/2; relative to r: 2^-31.2
SIN_SINGLE = tuple(map(float.fromhex, (
    "-0x1.5555560000000p-3", "0x1.1111380000000p-7", "-0x1.a024c40000000p-13", "0x1.72f25e0000000p-19",
    "-0x1.b97ffa0000000p-26",
)))

# sin(r) = r + r z p(z), z = r², |r| <= π/2; relative to r: 2^-61.7
SIN_DOUBLE = tuple(map(float.fromhex, (
    "-0x1.5555555555555p-3", "0x1.11111111110c8p-7", "-0x1.a01a01a014cf5p-13", "0x1.71de3a52995d7p-19",
    "-0x1.ae6454cf3304fp-26", "0x1.6123cb3f25383p-33", "-0x1.ae42f0c8b8fdcp-41", "0x1.882042d815550p-49",
)))

# the same for |r| <= π/4: 2^-27.9
SIN_QUARTER_SINGLE = tuple(map(float.fromhex, (
    "-0x1.5555440000000p-3", "0x1.1106bc0000000p-7", "-0x1.99169a0000000p-13",
)))

# the same for |r| <= π/4: 2^-57.8
SIN_QUARTER_DOUBLE = tuple(map(float.fromhex, (
    "-0x1.5555555555547p-3", "0x1.111111110f579p-7", "-0x1.a01a019bade1ep-13", "0x1.71de351e92a4ap-19",
    "-0x1.ae5e1e9b06a59p-26", "0x1.5d7dc58e2e7acp-33",
)))

# cos(r) = 1 - z/2 + z² p(z), z = r², |r| <= π/4; relative to 1: 2^-33.1
COS_QUARTER_SINGLE = tuple(map(float.fromhex, (
    "0x1.55554a0000000p-5", "-0x1.6c0c1a0000000p-10", "0x1.99e0e40000000p-16",
)))

# cos(r) = 1 - z/2 + z² p(z), z = r², |r| <= π/4; relative to 1: 2^-63.9
COS_QUARTER_DOUBLE = tuple(map(float.fromhex, (
    "0x1.555555555554ap-5", "-0x1.6c16c16c14dc4p-10", "0x1.a01a019c51597p-16", "-0x1.27e4f7c23403fp-22",
    "0x1.1ee9b9e14ae88p-29", "-0x1.8f941ec4bace8p-37",
)))

# atan(x) = x + x z p(z), z = x², |x| <= 1; relative: 2^-28.5
ATAN_SINGLE = tuple(map(float.fromhex, (
    "-0x1.55553e0000000p-2", "0x1.9991e40000000p-3", "-0x1.2420840000000p-3", "0x1.c08c1a0000000p-4",
    "-0x1.5808160000000p-4", "0x1.da24e00000000p-5", "-0x1.fd70140000000p-6", "0x1.64117e0000000p-7",
    "-0x1.d32f3c0000000p-10",
)))

# atan(x) = x + x z p(z), z = x², |x| <= 1; relative: 2^-57.6
ATAN_DOUBLE = tuple(map(float.fromhex, (
    "-0x1.5555555555526p-2", "0x1.99999999955afp-3", "-0x1.249249237f43fp-3", "0x1.c71c717fcb04fp-4",
    "-0x1.745d11ae29aeep-4", "0x1.3b136696e16ebp-4", "-0x1.110e510d0084bp-4", "0x1.e1bba53d48f44p-5",
    "-0x1.ae5e6d8b79163p-5", "0x1.82dac5fb82f84p-5", "-0x1.59a3d0cf78b1ep-5", "0x1.2c2dfda8b71d3p-5",
    "-0x1.e9f8dca701855p-6", "0x1.683b4dcd31bf9p-6", "-0x1.c78cf73cde894p-7", "0x1.d7b512cae0db3p-8",
    "-0x1.7a3554af3fe04p-9", "0x1.b3f4a726b2855p-11", "-0x1.3f30e29aac14ep-13", "0x1.bbe4ca0d75c85p-17",
)))

# asin(x) = x + x z p(z), z = x², |x| <= 1/2; relative to x: 2^-27.6
ASIN_SINGLE = tuple(map(float.fromhex, (
    "0x1.5555ca0000000p-3", "0x1.33016a0000000p-4", "0x1.748a2a0000000p-5", "0x1.8bb5680000000p-6",
    "0x1.59cc4e0000000p-5",
)))

# asin(x) = x + x z p(z), z = x², |x| <= 1/2; relative to x: 2^-59.8
ASIN_DOUBLE = tuple(map(float.fromhex, (
    "0x1.5555555555578p-3", "0x1.333333332df28p-4", "0x1.6db6db722a210p-5", "0x1.f1c71a8c303e6p-6",
    "0x1.6e8bdfd435865p-6", "0x1.1c49df6ad9fdap-6", "0x1.ca211ffa6fd05p-7", "0x1.7578c820b3964p-7",
    "0x1.61837afb53297p-7", "0x1.e1cda1a192178p-9", "0x1.64dddb98eb652p-6", "-0x1.59c1911d9cfedp-6",
    "0x1.0bd351f179940p-5",
)))

# sinh(x) = x + x z p(z), z = x², |x| <= 1; relative to x: 2^-31.5
SINH_SINGLE = tuple(map(float.fromhex, (
    "0x1.5555560000000p-3", "0x1.1110e20000000p-7", "0x1.a021560000000p-13", "0x1.75a6f60000000p-19",
)))

# sinh(x) = x + x z p(z), z = x², |x| <= 1; relative to x: 2^-61.8
SINH_DOUBLE = tuple(map(float.fromhex, (
    "0x1.5555555555556p-3", "0x1.1111111111020p-7", "0x1.a01a01a036c61p-13", "0x1.71de3a3b6b46fp-19",
    "0x1.ae646f96abd5bp-26", "0x1.61171d9682da0p-33", "0x1.b5bb355ebe721p-41",
)))

# erf(x) = x + x p(z), z = x², |x| <= 1; relative: 2^-29.8
ERF_CENTRE_SINGLE = tuple(map(float.fromhex, (
    "0x1.06eba80000000p-3", "-0x1.8127400000000p-2", "0x1.ce2d560000000p-4", "-0x1.b7ff3a0000000p-6",
    "0x1.54348e0000000p-8", "-0x1.a540160000000p-11", "0x1.4ccf240000000p-14",
)))

# erf(x) = x + x p(z), z = x², |x| <= 1; relative: 2^-55.9
ERF_CENTRE_DOUBLE = tuple(map(float.fromhex, (
    "0x1.06eba8214db68p-3", "-0x1.812746b03799bp-2", "0x1.ce2f21a03f65fp-4", "-0x1.b82ce3119c94fp-6",
    "0x1.565bccecd4fc7p-8", "-0x1.c02dae5e5c0d3p-11", "0x1.f9a28d99d24ecp-14", "-0x1.f4c7996cf4164p-17",
    "0x1.b9654b5e09309p-20", "-0x1.5b6622ccc7b01p-23", "0x1.d2cecccf084a5p-27", "-0x1.9f0a22b0e338bp-31",
)))

# log(1 - erf(x)), 0.95 <= x <= 3.93; absolute in erf: 2^-28.6
ERF_TAIL_SINGLE = tuple(map(float.fromhex, (
    "-0x1.d1fb860000000p+2", "-0x1.4a83080000000p+2", "-0x1.e18a220000000p-1", "-0x1.7ecf240000000p-7",
    "0x1.5603120000000p-9", "-0x1.fa1a120000000p-13", "0x1.9110360000000p-13",
)))

# (1+2x) exp(x²) erfc(x), x = 4 (1+t)/(1-t), 0 <= x <= 30; absolute, the value is 1 to 1.4: 2^-11.2
ERFC_DOUBLE = tuple(map(float.fromhex, (
    "0x1.3ba5916e9fd7fp+0", "-0x1.1df1ad154a28ep-3", "0x1.f7f5df66fb6c5p-7", "0x1.16ecefcfa5a63p-4",
    "-0x1.9ddb23c3da115p-4", "0x1.7fee004e13e58p-4", "-0x1.0fb06dff4ed63p-4", "0x1.3079edd23f9d7p-5",
    "-0x1.096237915a507p-6", "0x1.49c690e82ca1ep-8", "-0x1.8d4ee51c618b6p-11", "-0x1.a2fdb1a2c58a9p-13",
    "0x1.3a9701e3a1494p-13", "0x1.49c52f18fe994p-17", "0x1.31332f608cc77p-14", "-0x1.ccb5dc8b6d836p-12",
    "-0x1.ae25e38e205edp-11", "0x1.1fd9894a379c3p-9", "-0x1.473c0b07628cbp-12", "-0x1.374328e534115p-6",
    "0x1.2781a60cf9981p-5", "0x1.851a42dfc8bdep-4", "0x1.aeb6837e6a238p-7", "-0x1.eae6cc896d800p-6",
)))

# the same with x = 2 (1+t)/(1-t), 0 <= x <= 11: 2^-17.9
ERFC_SHORT_WIDENED = tuple(map(float.fromhex, (
    "0x1.46e80e2403deap+0", "-0x1.7bf5ec8e336fap-4", "-0x1.5407c4ca224c6p-3", "0x1.4ffa19b72abb3p-3",
    "-0x1.bc299f1f2ac5fp-5", "-0x1.0737de446ad49p-7", "0x1.1d97a5c62ca60p-7", "0x1.504753a10ff40p-10",
    "-0x1.74907fca8432dp-10", "-0x1.4d865295c16b2p-11", "-0x1.e26cbf598d14dp-16", "0x1.5a0929340e100p-12",
    "0x1.f8c526abc6e6bp-13",
)))

# erfinv(x) = x p(w), w = -log(1-x²) <= 5; relative in (t - 2.5): 2^-21.7
ERFINV_CENTRE_SINGLE = tuple(map(float.fromhex, (
    "0x1.805c5e0000000p+0", "0x1.f91e8c0000000p-3", "-0x1.11c9ac0000000p-8", "-0x1.4879ec0000000p-10",
    "0x1.ca690e0000000p-13", "-0x1.35e0080000000p-18", "-0x1.dac80c0000000p-19", "0x1.7f69560000000p-22",
    "0x1.03df140000000p-25", "0x1.3c7a120000000p-30",
)))

# erfinv(x) = x p(s), s = √w, 2.2 <= s <= 4.2; relative in (t - 3.2): 2^-22.5
ERFINV_OUTER_SINGLE = tuple(map(float.fromhex, (
    "0x1.844e340000000p+1", "0x1.0133860000000p+0", "0x1.877c400000000p-8", "-0x1.196c560000000p-8",
    "0x1.81fe1c0000000p-9", "-0x1.0508420000000p-9", "0x1.225d7e0000000p-10", "-0x1.7ed4c00000000p-12",
    "-0x1.2936540000000p-14", "0x1.b799c20000000p-14", "-0x1.81f2580000000p-17",
)))

# erfinv(x) = x p(w - 3.125), w <= 6.25; relative: 2^-17.8
ERFINV_INNER_DOUBLE = tuple(map(float.fromhex, (
    "0x1.a755e7c99ae86p+0", "0x1.ebd80d9b13defp-3", "-0x1.8b6c33114ed72p-8", "-0x1.8457694827981p-11",
    "0x1.879c2a20bd4abp-13", "-0x1.d1d1f7d81283ep-17", "-0x1.6e8a522f0f2e8p-20", "0x1.c6b4f913bc4e4p-22",
    "-0x1.f36ed7c1ca634p-26", "-0x1.1a9d61ac16e1ep-28", "0x1.20b1849475949p-30", "-0x1.e374cd74772d4p-35",
    "-0x1.ea71aefe417d9p-38", "0x1.7e8e896e2c6bcp-38", "-0x1.9030dc6989aefp-38", "-0x1.4bc6cfbcbb16ep-40",
    "-0x1.ebc74ef71021ap-40", "-0x1.c956605e5fe99p-39", "0x1.dd60ab1789d9bp-41", "0x1.61c26e48d8cc6p-40",
    "-0x1.535f755d1b409p-45", "-0x1.2ec748b996e92p-43", "-0x1.78f9c8c8bdc39p-49", "0x1.2bd6daa845508p-48",
)))

# erfinv(x) = x p(s - 3.25), s = √w, 2.5 <= s <= 4; relative: 2^-24.8
ERFINV_MIDDLE_DOUBLE = tuple(map(float.fromhex, (
    "0x1.8abcc380d5a48p+1", "0x1.0158a6d641d54p+0", "0x1.5ffcfe5b6439dp-8", "-0x1.ebadabb9e7567p-9",
    "0x1.468eecae16155p-9", "-0x1.ba9240edab599p-10", "0x1.f3cc5253b1c03p-11", "-0x1.7448e2efedd24p-12",
    "0x1.932a142ddc300p-16", "0x1.1ee2a78c93470p-14", "-0x1.8aa4cefdf02e9p-15", "0x1.1cf6f3b936214p-17",
    "-0x1.950c24060c9b6p-18", "0x1.69c97e7960972p-15", "0x1.6a5c5c2cb1530p-14", "-0x1.720f5c69c6d88p-13",
    "-0x1.8966c55a7c031p-14", "0x1.33a49e8c962c7p-15", "-0x1.294ef0a4ee12fp-13", "0x1.1ac0d0d0e2589p-12",
    "0x1.183cb3f60f22bp-13",
)))

# erfinv(x) = x p(s - 5), s = √w, 4 <= s <= 6.1; relative: 2^-38.8
ERFINV_OUTER_DOUBLE = tuple(map(float.fromhex, (
    "0x1.3664ddd1ad7fbp+2", "0x1.02a30d1fba10bp+0", "-0x1.22ea5df1feb39p-13", "-0x1.c2f36aa1aeba9p-13",
    "0x1.3ebf4eff2e9a4p-14", "-0x1.4a348ff5e1a31p-16", "0x1.2fbcfde776546p-18", "-0x1.0a906d645d6c6p-20",
    "0x1.ebe221b1c23b8p-23", "-0x1.222bc62c4d778p-24", "0x1.f2d3919d25fc3p-26", "-0x1.04d6030e839cfp-26",
    "0x1.08be6979d6b86p-27", "-0x1.052a618673fffp-28", "0x1.d41c3dda360ffp-30", "0x1.d100efdb31228p-34",
    "-0x1.2fde523c6b7dfp-31", "-0x1.0c5118d521224p-32", "0x1.56a532e478b63p-32",
)))
