import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Resolved } from '../contribution.ts'

const type = WorkloadCondition.Authenticated

/** The condition of a workload that authenticates its clients; `oidc` as it was resolved. */
export function authenticatedBy(oidc: Resolved): ConditionUpdate {
  if (!oidc.ok) {
    const message = 'spec.oidcConfig is invalid, so no client can authenticate: see the other conditions'
    return { type, status: 'False', reason: WorkloadReason.AuthInvalid, message }
  }
  const config = oidc.contribution?.runConfig?.oidc_config
  if (config !== undefined && config.audience === undefined && config.resource_url === undefined) {
    const message =
      'Clients must authenticate, but tokens for any audience are accepted. Set the audience in spec.oidcConfig, or its resourceUrl.'
    return { type, status: 'True', reason: WorkloadReason.AudienceNotChecked, message }
  }
  return { type, status: 'True', reason: WorkloadReason.AuthValid, message: 'clients must authenticate' }
}
