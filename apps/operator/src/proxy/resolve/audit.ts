import { contributes, nothing, type Resolved } from '../contribution.ts'

/** Audit events of the proxy, without what was asked and answered. */
export function resolveAudit({ audit }: { audit: { enabled: boolean } }): Resolved {
  if (!audit.enabled) return nothing
  return contributes({
    runConfig: {
      audit_config: {
        enabled: true,
        event_types: [],
        exclude_event_types: [],
        include_request_data: false,
        include_response_data: false,
        detect_application_errors: true,
        max_data_size: 1024,
        max_delegation_depth: 10,
      },
    },
  })
}
