import { systemClock } from '@thv/kernel/clock'
import { judgeRegistration, registrationAnswer } from '../clients/registration.ts'
import { createSealedClients } from '../clients/sealed-clients.ts'
import { ephemeralServerSecrets } from '../keys/server-secrets.ts'
import { AddressLimit } from '../server/rate-limits.ts'

/* node --expose-gc registration-flood.ts COUNT: registers that many clients, and prints by how many bytes the memory in use has grown. */

const RULES = {
  scopes_supported: ['openid', 'mcp'],
  baseline_client_scopes: [],
  allow_confidential_client_registration: true,
  insecure_allow_confidential_over_loopback_http: false,
  force_confidential_redirect_uris: [],
}
/** The limits remember this many addresses; they are full before anything is measured. */
const WARM_UP = 12_000

const clients = createSealedClients(ephemeralServerSecrets(), systemClock)
const limit = new AddressLimit({ perSecond: 1, burst: 5 }, systemClock)
let accepted = 0

function register(n: number): void {
  if (limit.take(`2001:db8::${n.toString(16)}`) > 0) return
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

function inUse(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const count = Number(process.argv[2])
for (let n = 0; n < WARM_UP; n++) register(n)
accepted = 0
const before = inUse()
for (let n = 0; n < count; n++) register(WARM_UP + n)
console.log(JSON.stringify({ accepted, grown: inUse() - before }))
