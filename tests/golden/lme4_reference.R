# Another program's numbers for the reference cohort: lme4's glmer with 25 adaptive quadrature nodes. From the root:
#
#   python tests/golden/reference_csv.py | Rscript tests/golden/lme4_reference.R > tests/golden/lme4_reference.json
#
# The model is logit P = b0 + b1 u + b2 u^2 + r, r ~ N(0, s^2), with u = (metric - 18) / 8, so that s is the
# discrimination a, the fixed effects are -a * difficulty, and a rider's conditional mode over s is their skill's.
suppressMessages(library(lme4))
cohort <- read.csv(file("stdin"), colClasses = c("character", "numeric", "integer"))
cohort$u <- (cohort$metric - 18) / 8
fit <- glmer(
  outcome ~ u + I(u^2) + (1 | rider),
  data = cohort, family = binomial, nAGQ = 25,
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, maxfun = 1e5))
)
modes <- ranef(fit, condVar = TRUE)$rider
# logLik() of a glmer with nAGQ > 1 leaves out the saturated part's constant; for 0/1 outcomes that constant is zero.
cat(jsonlite::toJSON(list(
  program = paste("R", getRversion(), "lme4", packageVersion("lme4")),
  outcomes = nrow(cohort),
  fixed_effects = unname(fixef(fit)),
  fixed_effect_covariance = unname(as.matrix(vcov(fit))),
  random_effect_sd = unname(attr(VarCorr(fit)$rider, "stddev")),
  log_likelihood = as.numeric(logLik(fit)),
  riders = rownames(modes),
  conditional_modes = modes[, 1],
  conditional_sds = sqrt(attr(modes, "postVar")[1, 1, ])
), digits = 12, auto_unbox = TRUE, pretty = TRUE), "\n")
