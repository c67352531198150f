import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { createMetrics } from '../metrics.ts'
import { CollectingLog } from '../testing/collecting-log.ts'
import { OtlpExporter } from './otlp-exporter.ts'

it('large log records are bounded in bytes while the collector hangs', async () => {
  const metrics = createMetrics()
  const exporter = new OtlpExporter({
    source: { resource: {}, scope: { name: 'test', version: '1' } },
    send: () => new Promise(() => {}),
    log: new CollectingLog(),
    metrics,
    clock: new TestClock(),
  })
  const body = 'x'.repeat(1024 * 1024)
  const record = { timeMs: 0, severityText: 'AUDIT', attributes: {}, traceId: undefined, spanId: undefined }
  for (let i = 0; i < 100; i++) exporter.addLog({ ...record, body })
  const dropped = metrics.collect().find(({ name }) => name === 'toolhive_otlp_dropped_total')
  expect(dropped?.series).toMatchObject([{ values: ['logs', 'full'], value: 92 }]) // 8 MiB wait
  await exporter.close(AbortSignal.abort())
})
