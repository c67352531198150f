import { randomUUID } from 'node:crypto'
import type { LoginEvent } from '@thv/authserver/login-events'
import type { AuditEvent } from './audit-event.ts'
import type { SystemEventSource } from './system-event.ts'

const ENDPOINTS: Readonly<Record<LoginEvent['type'], string>> = {
  auth_login: '/oauth/callback',
  auth_consent: '/oauth/login',
  auth_registration: '/oauth/register',
  auth_client: '/oauth/token',
  auth_token_issue: '/oauth/token',
  auth_token_refresh: '/oauth/token',
  auth_token_exchange: '/oauth/token',
  auth_token_reuse: '/oauth/token',
  auth_revocation: '/oauth/revoke',
  auth_upstream_refresh: '',
}

/** An event of the embedded authorization server as a line of the audit log. */
export function loginEvent(event: LoginEvent, { component, backend, clock }: SystemEventSource): AuditEvent {
  const { type, outcome, account, client, provider, reason, address } = event
  const time = new Date(clock.now()).toISOString()
  return {
    ...{ time, level: 'AUDIT', msg: 'audit_event', audit_id: randomUUID(), type, logged_at: time, outcome, component },
    source: { type: address === undefined ? 'local' : 'network', value: address ?? 'authserver', extra: undefined },
    subjects: { user: account ?? 'anonymous', user_id: account, issuer: undefined, client_name: client, client_version: undefined },
    delegation: undefined,
    target: { endpoint: ENDPOINTS[type], http_method: '', method: undefined, name: provider, type: 'endpoint', backend_name: backend },
    metadata: {
      extra: {
        ...{ duration_ms: 0, transport: 'http', status_code: undefined, response_size_bytes: 0, rejection: undefined, aborted: undefined },
        ...{ jsonrpc_error_code: undefined, jsonrpc_error_message: undefined, trace_id: undefined, span_id: undefined, dropped: undefined },
        ...(reason !== undefined && { problems: [reason.slice(0, 256)] }),
      },
    },
    data: undefined,
  }
}
