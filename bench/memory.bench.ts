import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figure } from './figure.ts'
import { measureIdle } from './memory/measure-idle.ts'
import { measureLoad } from './memory/measure-load.ts'
import { measureOperator, SERVERS } from './memory/measure-operator.ts'
import { measureQuickStart, measureVirtualServer } from './memory/measure-quick-start.ts'
import { drawSvg, type RssSeries } from './memory/rss-series.ts'
import { stateBefore, stateNow } from './memory/states.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { leanStdioCommand, startLeanHttp } from './proxy/subjects.ts'

/*
 * Memory of our programs beside the state before the work on it, both in turns. BENCH_QUICK=1 for a look; BENCH_PARTS=proxy,operator,
 * quick-start,virtual-server selects parts. Only Linux tells how much memory processes share.
 */

const GRAPHS = fileURLToPath(new URL('results', import.meta.url))
const PARTS = ['proxy', 'operator', 'quick-start', 'virtual-server'] as const

type Log = (line: string) => void

export async function run(log: Log): Promise<Figure[]> {
  if (process.platform !== 'linux') {
    log('the memory benchmark needs Linux (/proc/PID/smaps_rollup)')
    return []
  }
  const parts = selectedParts()
  return [
    ...(parts.includes('proxy') ? await measureProxy(log) : []),
    ...(parts.includes('operator') ? await operatorFigures(log) : []),
    ...(parts.includes('quick-start') ? await measureQuickStart([await stateBefore(log), stateNow()], log) : []),
    ...(parts.includes('virtual-server')
      ? await measureVirtualServer(stateNow(), { isQuick: process.env['BENCH_QUICK'] === '1', log })
      : []),
  ]
}

function selectedParts(): readonly string[] {
  const wanted = process.env['BENCH_PARTS']?.split(',') ?? PARTS
  const unknown = wanted.filter((part) => !(PARTS as readonly string[]).includes(part))
  if (unknown.length > 0) throw new Error(`BENCH_PARTS: there is no part ${unknown.join(', ')}; there are ${PARTS.join(', ')}`)
  return wanted
}

async function measureProxy(log: Log): Promise<Figure[]> {
  const isQuick = process.env['BENCH_QUICK'] === '1'
  const states = [await stateBefore(log), stateNow()]
  await using backend = await startLeanHttp()
  using load = await startLoadGenerator()
  const shared = { states, backend: backend.url, log, rounds: isQuick ? 1 : 3 }
  const idle = await measureIdle(shared)
  const command = await leanStdioCommand()
  const { figures, series } = await measureLoad({ ...shared, load, command, burstMs: isQuick ? 3_000 : 8_000 })
  draw('proxy', 'RSS of an HTTP proxy in MB: 64 sessions, quiet, 64 sessions, quiet', series)
  return [...idle, ...figures]
}

async function operatorFigures(log: Log): Promise<Figure[]> {
  const { figures, series } = await measureOperator([await stateBefore(log), stateNow()], log)
  draw('operator', `RSS of the operator in MB: ${SERVERS.toLocaleString('en')} servers created, quiet, all of them changed, quiet`, series)
  return figures
}

function draw(name: string, title: string, series: readonly RssSeries[]): void {
  mkdirSync(GRAPHS, { recursive: true })
  writeFileSync(join(GRAPHS, `memory-${name}.svg`), drawSvg(title, series))
}
