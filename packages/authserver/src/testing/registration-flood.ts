import { systemClock } from '@thv/kernel/clock'
import { judgeRegistration, registrationAnswer } from '../clients/registration.ts'
import { createSealedClients } from '../clients/sealed-clients.ts'
import { ephemeralServerSecrets } from '../keys/server-secrets.ts'
import { AddressLimit } from '../server/rate-limits.ts'

/*
 * node --expose-gc registration-flood.ts COUNT BYTES: registers that many clients, each from an address of its own, and has as many refused to one
 * address. Prints by how many bytes the process has grown. Its state before is a settled one: compiled, with all limits full, and without garbage.
 * Does all of it again when it grew by more than BYTES: what is kept of each request makes it grow again, what an allocator has taken once does not.
 */

const RULES = {
  scopes_supported: ['openid', 'mcp'],
  baseline_client_scopes: [],
  allow_confidential_client_registration: true,
  insecure_allow_confidential_over_loopback_http: false,
  force_confidential_redirect_uris: [],
}
/** More than the addresses that the limits remember. */
const WARM_UP = 20_000
/** The compiler works for a while after what it works on has run. */
const SETTLE_MS = 500
const ROUNDS = 3

const clients = createSealedClients(ephemeralServerSecrets(), systemClock)
const limit = new AddressLimit({ perSecond: 1, burst: 5 }, systemClock)
let accepted = 0
let refused = 0

function register(n: number, address: string): void {
  if (limit.take(address) > 0) {
    refused++
    return
  }
  const metadata = {
    client_name: `client ${n}`,
    redirect_uris: [`https://client-${n}.example.com/callback`],
    token_endpoint_auth_method: 'client_secret_basic',
  }
  const judged = judgeRegistration(metadata, RULES)
  if (!judged.ok) throw new Error(judged.description)
  const { client_id: id } = registrationAnswer(judged.client, clients)
  if (clients.open(String(id))?.client_name === metadata.client_name) accepted++
}

function flood(from: number, count: number): void {
  for (let n = from; n < from + count; n++) register(n, `2001:db8::${n.toString(16)}`)
  for (let n = from; n < from + count; n++) register(n, 'one')
}

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => Promise<void>

/** Of the whole process, after a collection that gives pages back to the system, and of the heap. */
async function settled(): Promise<{ rss: number; heap: number }> {
  const collect = globalThis.gc as unknown as Collect | undefined
  if (collect === undefined) throw new Error('start it with --expose-gc')
  for (let round = 0; round < 3; round++) {
    await systemClock.sleep(SETTLE_MS)
    await collect({ type: 'major', execution: 'async', flavor: 'last-resort' })
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heap: heapUsed + external }
}

const [count = 0, most = 0] = process.argv.slice(2).map(Number)
flood(0, WARM_UP)
let before = await settled()
for (let round = 1; ; round++) {
  accepted = 0
  refused = 0
  flood(WARM_UP + (round - 1) * count, count)
  const after = await settled()
  const grown = { rss: after.rss - before.rss, heap: after.heap - before.heap }
  if (round === ROUNDS || Math.max(grown.rss, grown.heap) < most) {
    console.log(JSON.stringify({ accepted, refused, ...grown }))
    break
  }
  before = after
}
