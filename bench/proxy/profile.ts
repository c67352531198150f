import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderColumns } from '../figure.ts'

/* node bench/proxy/profile.ts FILE.cpuprofile: where the time of a bundled program went, by source file and by function. */

interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
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
const sources = new Map<string, readonly string[]>()
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

/** The bundler writes the path of each source above its part. */
function sourceOf({ url, lineNumber }: CallFrame): string {
  if (!url.startsWith('file:')) return url === '' ? '(native)' : url
  const path = fileURLToPath(url)
  let lines = sources.get(path)
  if (lines === undefined) {
    lines = readFileSync(path, 'utf8').split('\n')
    sources.set(path, lines)
  }
  for (let line = lineNumber; line >= 0; line--) {
    const found = /^\s*\/\/ ((?:[\w.@-]+\/)+[\w.-]+\.(?:ts|m?js))$/.exec(lines[line] ?? '')?.[1]
    if (found !== undefined) return found
  }
  return path
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
