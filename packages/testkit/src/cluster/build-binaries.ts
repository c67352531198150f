import { ensureBinaries } from './binaries.ts'
import { isProgramSet, programSets } from './programs.ts'

// `node packages/testkit/src/cluster/build-binaries.ts [SET]`: makes sure that the Kubernetes binaries (all of them, or those of
// one set) are there, prints their folder. Started in the background at the beginning of a test run; the cluster stage waits for the
// same lock.

const set = process.argv[2] ?? 'node'
if (!isProgramSet(set)) throw new Error(`there is no set "${set}": ${Object.keys(programSets).join(', ')}`)

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)))

try {
  const binaries = await ensureBinaries({ set, log: (line) => console.error(line), signal: interruption.signal })
  console.log(binaries.folder)
} catch (error) {
  console.error(`kubernetes binaries: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = interruption.signal.aborted ? 130 : 1
}
