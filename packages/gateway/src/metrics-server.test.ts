import { get } from 'node:http'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { startMetricsServer } from './metrics-server.ts'

describe('the port for metrics', () => {
  it('serves them and nothing else', async () => {
    const metrics = createMetrics()
    metrics.counter({ name: 'seen_total', help: 'Seen.' }).with().inc(3)
    const diagnostics = await startMetricsServer({ host: '127.0.0.1', port: 0, metrics, log: new CollectingLog() })
    const { url } = diagnostics.address
    const page = await fetch(`${url}/metrics`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(await page.text()).toContain('seen_total 3')
    expect((await fetch(`${url}/mcp`)).status).toBe(404)
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${url}/metrics`, { headers: { origin: 'http://evil.example' } })).status).toBe(403)
    await diagnostics.close(AbortSignal.timeout(1_000))
    await expect(fetch(`${url}/metrics`)).rejects.toThrow()
  })

  it('rejects a foreign Host when it ends up on a loopback address', async () => {
    const diagnostics = await startMetricsServer({ host: '127.1', port: 0, metrics: createMetrics(), log: new CollectingLog() })
    const answer = await fetch(`${diagnostics.address.url}/metrics`, { headers: { origin: 'http://localhost' } })
    expect(answer.status).toBe(200)
    const { port } = diagnostics.address
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'evil.example.com', origin: 'http://evil.example.com' }
      get({ host: '127.0.0.1', port, path: '/metrics', headers }, (response) => {
        resolve(response.resume().statusCode)
      }).on('error', reject)
    })
    expect(status).toBe(403)
    await diagnostics.close(AbortSignal.timeout(1_000))
  })

  it('gives way when it is taken', async () => {
    const log = new CollectingLog()
    const options = { host: '127.0.0.1', metrics: createMetrics(), log }
    const first = await startMetricsServer({ ...options, port: 0 })
    const second = await startMetricsServer({ ...options, port: first.address.port })
    expect(second.address.port).not.toBe(first.address.port)
    expect(log.lines.join()).toContain('the port for metrics is taken')
    await Promise.all([first, second].map((one) => one.close(AbortSignal.timeout(1_000))))
  })
})
