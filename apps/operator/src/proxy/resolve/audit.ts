import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalAuditConfig } from '@thv/resources/shared/audit-config'
import type { AuditConfig } from '@thv/runconfig/audit-config'
import { contributes, nothing, type Resolved } from '../contribution.ts'

const MIB = 1024 * 1024

/** Audit events of the proxy, on its standard output. */
export function resolveAudit({ audit }: { audit: CanonicalAuditConfig }): Resolved {
  if (!audit.enabled) return nothing
  const config: AuditConfig = compact({
    enabled: true,
    component: audit.component,
    event_types: audit.eventTypes,
    exclude_event_types: audit.excludeEventTypes,
    include_request_data: audit.includeRequestData,
    include_response_data: audit.includeResponseData,
    detect_application_errors: audit.detectApplicationErrors,
    max_data_size: audit.maxDataSize,
    max_delegation_depth: audit.maxDelegationDepth,
    max_file_size: 100 * MIB,
    max_files: 5,
    otlp: false,
  })
  return contributes({ runConfig: { audit_config: config } })
}
