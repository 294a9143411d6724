# What the R programs share: the cohort in, the answer out. Run as `Rscript NAME.R FOLDER OUT [OPTION]`.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
out <- arguments[2]

column <- function(name, kind) {
  path <- file.path(folder, name)
  size <- if (kind == "double") 8 else 4
  readBin(path, kind, n = file.size(path) / size, size = size, endian = "little")
}

metric <- column("metric.f64", "double")
grid_metric <- column("grid.f64", "double")
# The metric on [-1, 1], which suits every optimiser that is given powers of it.
centre <- (grid_metric[1] + tail(grid_metric, 1)) / 2
half <- (tail(grid_metric, 1) - grid_metric[1]) / 2
cohort <- data.frame(
  rider = factor(column("rider.i32", "integer")),
  x = (metric - centre) / half,
  outcome = column("outcome.i32", "integer")
)
grid <- data.frame(x = (grid_metric - centre) / half)
at_grid <- model.matrix(~ x + I(x^2), grid)
rm(metric)

cpu <- function() sum(proc.time()[c("user.self", "sys.self")])

# The largest resident memory of this process so far, in megabytes.
peak <- function() {
  status <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", status)) / 1024
}

# f is a times difficulty, and minus the linear predictor without skill.
answer <- function(cpu_seconds, a, difficulty, skill, se = NULL) {
  writeLines(
    c(paste("cpu_seconds", cpu_seconds), paste("peak_megabytes", peak()), paste("discrimination", format(a, digits = 17))),
    file.path(out, "scalars.txt")
  )
  writeBin(as.double(difficulty), file.path(out, "difficulty.f64"), endian = "little")
  writeBin(as.double(skill), file.path(out, "skill.f64"), endian = "little")
  if (!is.null(se)) writeBin(as.double(se), file.path(out, "difficulty_se.f64"), endian = "little")
}

# Standard errors of difficulty from the covariance of the fixed effects; the sd of skill is taken as known, as the
# covariance that the program gives has no entry for it.
se_with_known_sd <- function(covariance, a) sqrt(rowSums((at_grid %*% covariance) * at_grid)) / a
