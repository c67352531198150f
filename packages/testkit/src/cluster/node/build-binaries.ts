import { ensureBinaries } from '../programs/binaries.ts'
import { isProgramSet, programSets } from '../programs/programs.ts'
import { ensureNodePackages, nodeProblem } from './node-packages.ts'

// `node packages/testkit/src/cluster/node/build-binaries.ts [SET]`: makes sure that the Kubernetes binaries (all of them, or those of one
// set) are there, and for a node the packages of the system too; prints the folder. Started in the background at the beginning of a
// test run; other users of the binaries wait for the same lock.

const set = process.argv[2] ?? 'node'
if (!isProgramSet(set)) throw new Error(`there is no set "${set}": ${Object.keys(programSets).join(', ')}`)

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)))

const log = (line: string) => console.error(line)
try {
  const installing = set === 'node' && nodeProblem() === undefined ? ensureNodePackages(log) : undefined
  const [binaries] = await Promise.all([ensureBinaries({ set, log, signal: interruption.signal }), installing])
  console.log(binaries.folder)
} catch (error) {
  console.error(`kubernetes binaries: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = interruption.signal.aborted ? 130 : 1
}
