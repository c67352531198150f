import { int32, list, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { BackendStatus, CircuitBreakerState, VirtualMCPServerPhase } from './constants.ts'

const discoveredBackend = () =>
  obj('One backend.', {
    name: str('Name of the backend.'),
    url: opt(str('Where it is reached.')),
    status: opt(oneOf('How it is.', Object.values(BackendStatus))),
    message: opt(str('Why it is so.')),
    authType: opt(str('How the virtual server authenticates to it.')),
    authConfigRef: opt(str('MCPExternalAuthConfig that says so.')),
    lastHealthCheck: opt(str('When it was last checked.', { format: 'date-time' })),
    consecutiveFailures: opt(int32('Failed checks in a row.')),
    circuitBreakerState: opt(oneOf('Whether calls are let through to it.', Object.values(CircuitBreakerState))),
    circuitLastChanged: opt(str('When that last changed.', { format: 'date-time' })),
    mcpRevision: opt(str('Revision of MCP that it speaks.')),
  })

/** Two writers: the operator, and the virtual server itself (backends, their count, phase, message and the conditions about them). */
export const status = obj('What became of the virtual server.', {
  phase: opt(oneOf('Where the server is in its life.', Object.values(VirtualMCPServerPhase), { default: VirtualMCPServerPhase.Pending })),
  message: opt(str('The phase in words, with what to do next.')),
  url: opt(str('Where clients in the cluster reach the server.')),
  group: opt(str('Name of the MCPGroup that is joined.')),
  backendCount: opt(int32('Number of backends that can be used.')),
  discoveredBackends: opt(list('The backends and how they are.', discoveredBackend(), { merge: ['name'] })),
  replicas: opt(int32('Number of pods.')),
  selector: opt(str('Label selector of the pods, for autoscalers.')),
  oidcConfigHash: opt(str('Hash of the OIDC settings in use.')),
  authzConfigHash: opt(str('Hash of the policies in use.')),
  telemetryConfigHash: opt(str('Hash of the telemetry settings in use.')),
  observedGeneration: opt(observedGeneration()),
  conditions: opt(conditions()),
})
