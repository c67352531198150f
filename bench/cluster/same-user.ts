import { measure } from '../child.ts'
import type { Figure } from '../figure.ts'
import type { NewConnections } from './new-connections.ts'

type Log = (line: string) => void

const OPEN = 1_000
const ROUNDS = process.env['BENCH_QUICK'] === '1' ? 40 : 200
/** Of the event loop, by one new connection. */
const LIMIT_MS = 1

/** How long the same-user check of the local platform holds up the event loop that serves everybody. Only Linux has it. */
export async function measureSameUser(log: Log): Promise<Figure[]> {
  if (process.platform !== 'linux') return []
  log(`new connections with ${OPEN} open …`)
  const env = { OPEN_SOCKETS: String(OPEN), ROUNDS: String(ROUNDS) }
  const { plain, checked, plainBurst, checkedBurst, syncReadMs } = await measure<NewConnections>('cluster/new-connections.ts', env)
  const open = `${OPEN.toLocaleString('en-US')} open`
  return [
    {
      name: `same-user check, ${open}: longest turn of the event loop by a new connection`,
      unit: 'ms',
      value: checked.turnMs,
      baseline: plain.turnMs,
      aim: { of: 'difference', limit: LIMIT_MS },
    },
    { name: 'the same, beside a read of the list on the event loop', unit: 'ms', value: checked.turnMs, baseline: syncReadMs },
    { name: 'the same, the worst of all', unit: 'ms', value: checked.worstTurnMs, baseline: plain.worstTurnMs },
    { name: 'the same, by 100 new connections at once', unit: 'ms', value: checkedBurst.turnMs, baseline: plainBurst.turnMs },
    { name: `same-user check, ${open}: a new connection until its answer`, unit: 'ms', value: checked.answerMs, baseline: plain.answerMs },
  ]
}
