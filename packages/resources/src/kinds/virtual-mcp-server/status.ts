import { int32, list, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { BackendStatus, CircuitBreakerState, VirtualMCPServerPhase } from './constants.ts'

const discoveredBackend = () =>
  obj('One backend.', {
    name: str('Name of the backend.'),
    url: opt(str('URL of the backend.')),
    status: opt(oneOf('Health of the backend.', Object.values(BackendStatus))),
    message: opt(str('Explanation of the health.')),
    authType: opt(str('Type of authentication to the backend.')),
    authConfigRef: opt(str('Name of its MCPExternalAuthConfig.')),
    lastHealthCheck: opt(str('Time of the last health check.', { format: 'date-time' })),
    consecutiveFailures: opt(int32('Consecutive failed checks.')),
    circuitBreakerState: opt(oneOf('State of the circuit breaker.', Object.values(CircuitBreakerState))),
    circuitLastChanged: opt(str('Time of its last change.', { format: 'date-time' })),
    mcpRevision: opt(str('Protocol version of the backend.')),
  })

/** Two writers: the operator, and the virtual server itself (backends, their count, phase, message and the conditions about them). */
export const status = obj('Observed state of the virtual server.', {
  phase: opt(oneOf('Lifecycle phase of the server.', Object.values(VirtualMCPServerPhase), { default: VirtualMCPServerPhase.Pending })),
  message: opt(str('Explanation of the phase, with what to do next.')),
  url: opt(str('URL of the server inside the cluster.')),
  group: opt(str('Name of the MCPGroup that is joined.')),
  backendCount: opt(int32('Number of backends that can be used.')),
  discoveredBackends: opt(list('State of the backends.', discoveredBackend(), { merge: ['name'] })),
  replicas: opt(int32('Number of pods.')),
  selector: opt(str('Label selector of the pods, for autoscalers.')),
  oidcConfigHash: opt(str('Hash of the OIDC settings in use.')),
  authzConfigHash: opt(str('Hash of the policies in use.')),
  telemetryConfigHash: opt(str('Hash of the telemetry settings in use.')),
  observedGeneration: opt(observedGeneration()),
  conditions: opt(conditions()),
})
