import { ensureBinaries } from './binaries.ts'

// `node packages/testkit/src/cluster/build-binaries.ts`: makes sure that the Kubernetes binaries are there, prints their folder.
// Started in the background at the beginning of a test run; the cluster stage waits for the same lock.

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)))

try {
  const binaries = await ensureBinaries({ log: (line) => console.error(line), signal: interruption.signal })
  console.log(binaries.folder)
} catch (error) {
  console.error(`kubernetes binaries: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = interruption.signal.aborted ? 130 : 1
}
