import { ensureCollector } from './collector-binary.ts'

// `node packages/testkit/src/collector/build-collector.ts`: makes sure that the collector is there and prints where. For the background of a test run.

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)))

try {
  console.log(await ensureCollector({ log: (line) => console.error(line), signal: interruption.signal }))
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = interruption.signal.aborted ? 130 : 1
}
