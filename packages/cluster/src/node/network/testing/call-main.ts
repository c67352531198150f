/** One of our own programs in a pod: calls the URL of its argument and prints what came, or the error's code. */
import { collect } from '@thv/http/outbound/collect'
import { createOutbound } from '@thv/http/outbound/outbound'
import { isThvError } from '@thv/kernel/errors'

await using outbound = createOutbound()
const url = new URL(process.argv[2] ?? '')
try {
  const target = outbound.target({ url: url.origin, policy: {} })
  const answer = await collect(target, { method: 'GET', path: url.pathname, headers: [], maxResponseBytes: 1_000 })
  console.log(answer.body.toString('utf8'))
} catch (error) {
  console.log(isThvError(error) ? `${error.code}: ${error.message}` : String(error))
}
