/** Seconds that each stage of `npm test` may take on 2 cores with the Kubernetes binaries cached. CI fails over the sum. */
export const BUDGET_SECONDS = {
  verify: 60,
  unit: 300,
  conformance: 300,
  binaries: 60,
  cluster: 600,
  embedded: 240,
  platform: 330,
  services: 320,
  'fresh clone': 120,
  node: 350,
} as const

/** What may come on top when the Kubernetes binaries are not cached and have to be built. */
export const BUILD_SECONDS = 1800

/** How many tests of a whole run may need a second try. */
export const MAX_UNSTEADY = 3

export type Stage = keyof typeof BUDGET_SECONDS
