import type { Metrics } from '@thv/telemetry/metrics'
import type { Backend } from '../backend.ts'
import type { Gateway } from '../gateway.ts'

export interface GatewayGaugesOptions {
  readonly backend: Backend
  readonly gateway: Gateway
  readonly server: string
  readonly transport: string
}

/** Values that are read when the page is rendered. */
export function addGatewayGauges(metrics: Metrics, { backend, gateway, server, transport }: GatewayGaugesOptions): void {
  const labels = ['server', 'transport']
  const gauge = (name: string, help: string) => metrics.gauge({ name, help, labels }).with(server, transport)
  const connections = gauge('toolhive_mcp_active_connections', 'Connections of clients.')
  const sessions = gauge('toolhive_mcp_sessions', 'Sessions of legacy clients.')
  const inFlight = gauge('toolhive_mcp_requests_in_flight', 'Calls that the backend has not answered yet.')
  const ready = gauge('toolhive_mcp_backend_ready', '1 when the backend is ready, else 0.')
  const speaks = metrics.gauge({
    name: 'toolhive_mcp_backend_era',
    help: '1 for each era that the backend is known to speak.',
    labels: ['era'],
  })
  metrics.onCollect(() => {
    const { status } = backend
    connections.set(gateway.stats.connections)
    sessions.set(status.sessions)
    inFlight.set(status.inFlight)
    ready.set(status.ready ? 1 : 0)
    for (const era of ['legacy', 'modern'] as const) speaks.with(era).set(status.eras?.includes(era) ? 1 : 0)
  })
}
