import { existsSync, readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { renderColumns } from '../figure.ts'

/* node bench/proxy/profile.ts FILE.cpuprofile: where the time of a bundled program went, by source file and by function. */

interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const file = process.argv[2]
if (file === undefined) throw new Error('usage: node bench/proxy/profile.ts FILE.cpuprofile')
const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile
const self = selfTimes(profile)
const idle = sum(profile.nodes.filter(({ callFrame }) => callFrame.functionName === '(idle)').map(({ id }) => self.get(id) ?? 0))
const busy = sum([...self.values()]) - idle
const maps = new Map<string, SourceMap | undefined>()
const byFile = new Map<string, number>()
const byFunction = new Map<string, number>()
for (const { id, callFrame } of profile.nodes) {
  const time = self.get(id) ?? 0
  if (callFrame.functionName === '(idle)' || time === 0) continue
  const source = sourceOf(callFrame)
  add(byFile, source, time)
  add(byFunction, `${callFrame.functionName || '(anonymous)'}  ${source}`, time)
}
console.log(`${(busy / 1000).toFixed(0)} ms of work\n`)
print(byFile, 25)
console.log()
print(byFunction, 60)

function selfTimes({ samples, timeDeltas }: Profile): Map<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) add(times, id, timeDeltas[index] ?? 0)
  return times
}

/** By the map that lies beside a bundle. */
function sourceOf({ url, lineNumber, columnNumber }: CallFrame): string {
  if (!url.startsWith('file:')) return url === '' ? '(native)' : url
  const path = fileURLToPath(url)
  if (!maps.has(path)) maps.set(path, existsSync(`${path}.map`) ? mapOf(`${path}.map`) : undefined)
  const entry = maps.get(path)?.findEntry(lineNumber, columnNumber)
  return entry && 'originalSource' in entry && entry.originalSource ? relative('..', entry.originalSource) : path
}

function mapOf(file: string): SourceMap {
  return new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload)
}

function print(times: ReadonlyMap<string, number>, top: number): void {
  const rows = [...times].sort(([, a], [, b]) => b - a).slice(0, top)
  console.log(renderColumns(rows.map(([name, time]) => [name, `${((100 * time) / busy).toFixed(1)} %`])))
}

function add<K>(times: Map<K, number>, key: K, time: number): void {
  times.set(key, (times.get(key) ?? 0) + time)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
