import type { RunConfig } from '@thv/runconfig/run-config'
import type { Contribution as DeploymentContribution, Resolved as DeploymentResolved } from '../deployment/contribution.ts'

/** RunConfig as the operator writes it: what is absent has the reader's default. */
export type RunConfigDocument = { -readonly [Field in keyof RunConfig]?: RunConfig[Field] }

/** The addition of one block of a spec, or of one referenced object, to a workload with a proxy. */
export interface Contribution extends DeploymentContribution {
  readonly runConfig?: RunConfigDocument
  /** The policies. Not part of the RunConfig: the proxy follows the file, so an edit replaces no pod. */
  readonly authzDocument?: string
}

export type Resolved = DeploymentResolved<Contribution>

export const nothing: Resolved = { ok: true, contribution: {} }

export function contributes(contribution: Contribution): Resolved {
  return { ok: true, contribution }
}
