import { type Figure, median } from '../figure.ts'
import type { Subject } from '../proxy/subjects.ts'
import { manyOf, type VmcpBenchOptions } from './measure-calls.ts'
import { startVmcp, vmcpConfig } from './subjects.ts'

const CLIENTS = 16
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** Nothing listens on it. */
const DEAD = 'http://127.0.0.1:9/mcp'

/** `initialize` and the whole `tools/list`, of 16 clients at once: the virtual server with 20 backends, against one lean server. */
export async function measureSessionStart({ legacy, rounds }: VmcpBenchOptions): Promise<Figure[]> {
  await using vmcp = await startVmcp(vmcpConfig(manyOf(legacy.url, 20)))
  await using partly = await startVmcp(vmcpConfig({ ...manyOf(legacy.url, 19), zdead: DEAD }))
  const times = { lean: [] as number[], vmcp: [] as number[], partly: [] as number[] }
  // One takes milliseconds: many of them tell a tenth apart.
  for (let round = 0; round < rounds * 12; round++) {
    const isWarm = round >= rounds * 4
    for (const [who, subject] of Object.entries({ lean: legacy, vmcp, partly }) as [keyof typeof times, Subject][]) {
      const ms = await opened(subject.url)
      if (isWarm) times[who].push(ms)
    }
  }
  const [value, baseline, withDead] = [median(times.vmcp), median(times.lean), median(times.partly)]
  return [
    { name: 'initialize to a full tools/list, 20 backends, 16 clients', unit: 'ms', value, baseline, aim: { of: 'ratio', limit: 3 } },
    { name: 'the same with one dead backend', unit: 'ms', value: withDead, baseline: value, aim: { of: 'ratio', limit: 1.1 } },
  ]
}

async function opened(url: string): Promise<number> {
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: CLIENTS }, () => listOnce(url)))
  return performance.now() - startedAt
}

async function listOnce(url: string): Promise<void> {
  const send = (message: object, session: Record<string, string> = {}, method = 'POST') =>
    fetch(url, { method, headers: { ...HEADERS, ...session }, ...(method === 'POST' && { body: JSON.stringify(message) }) })
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
  const opening = await send({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  await opening.arrayBuffer()
  const session = { 'mcp-session-id': opening.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }
  const list = await send({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} }, session)
  if (!(await list.text()).includes('"echo"')) throw new Error('the list has no echo')
  await (await send({}, session, 'DELETE')).arrayBuffer()
}
