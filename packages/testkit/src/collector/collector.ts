import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '../cluster/process/daemon.ts'
import { guardedFolderPrefix, startGuard } from '../cluster/process/process-guard.ts'
import { startOnPort } from '../cluster/process/start-on-port.ts'
import { ensureCollector } from './collector-binary.ts'

/** A real OpenTelemetry collector on loopback, which ends with this process. */
export interface Collector extends AsyncDisposable {
  /** Host and port of OTLP/HTTP. */
  readonly endpoint: string
  /** Everything that it received, in the words of its debug exporter. */
  received(): Promise<string>
  spans(): Promise<CollectedSpan[]>
  /** Bodies of log records. */
  logs(): Promise<string[]>
}

export interface CollectedSpan {
  readonly traceId: string
  readonly parentId: string
  readonly id: string
  readonly name: string
}

const START_LIMIT_MS = 60_000

export async function startCollector(): Promise<Collector> {
  const command = await ensureCollector({ log: (line) => console.error(line) })
  const guard = startGuard()
  const folder = await mkdtemp(join(tmpdir(), guardedFolderPrefix))
  guard.removeAtEnd(folder)
  const output = join(folder, 'received.jsonl')
  const { port } = await startOnPort({
    limitMs: START_LIMIT_MS,
    start: async (chosen) => {
      const file = join(folder, `config-${chosen}.yaml`)
      await writeFile(file, configuration(chosen, output))
      return startDaemon('otelcol', { command, args: ['--config', file], logFile: join(folder, 'log'), guard })
    },
    ready: async (chosen) => {
      const headers = { 'content-type': 'application/json' }
      const limit = AbortSignal.timeout(5_000)
      return (await fetch(`http://127.0.0.1:${chosen}/v1/traces`, { method: 'POST', headers, body: '{}', signal: limit })).ok
    },
  })
  const received = async () =>
    (await readFile(output, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => String((JSON.parse(line) as { msg?: unknown }).msg ?? ''))
      .join('\n')
  return {
    endpoint: `127.0.0.1:${port}`,
    received,
    spans: async () =>
      [...(await received()).matchAll(SPAN)].map(([, traceId = '', parentId = '', id = '', name = '']) => ({
        traceId,
        parentId,
        id,
        name,
      })),
    logs: async () => [...(await received()).matchAll(/^Body: Str\((.*)\)$/gm)].map(([, body = '']) => body),
    [Symbol.asyncDispose]: () => guard.close(),
  }
}

const SPAN = /Trace ID +: (\w*)\n +Parent ID +: (\w*)\n +ID +: (\w*)\n +Name +: (.*)/g

/** JSON, which is YAML too. */
function configuration(port: number, output: string): string {
  const pipeline = { receivers: ['otlp'], exporters: ['debug'] }
  return JSON.stringify({
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { debug: { verbosity: 'detailed', sampling_initial: 1_000_000, sampling_thereafter: 1 } },
    service: {
      telemetry: { metrics: { level: 'none' }, logs: { encoding: 'json', output_paths: [output], sampling: { enabled: false } } },
      pipelines: { traces: pipeline, metrics: pipeline, logs: pipeline },
    },
  })
}
