import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { HttpReply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import type { Exchange } from '@thv/http/server/exchange'
import { errorMessage } from '@thv/kernel/errors'
import { type RequestId, serialise } from '@thv/mcp/json-rpc'
import { isRejection, type Rejection, reject, responseOf } from '@thv/mcp/wire-errors'
import type { WorkflowJournal } from '../compose/composite-calls.ts'
import type { LeftWorkflow, RunningWorkflows } from '../compose/running-workflows.ts'
import type { Offer } from '../offer.ts'
import type { VirtualCall } from '../route/virtual-call.ts'
import type { VirtualSession } from './virtual-session.ts'

/** For a client whose workflow runs at another replica. */
const COME_AGAIN_MS = 3_000

interface Running {
  readonly requestId: RequestId
  readonly reply: HttpReply
  readonly call: VirtualCall
}

/** Workflows of legacy clients that another replica has run, and those here that another may have to tell of. */
export class LeftWorkflows {
  readonly #running: RunningWorkflows
  readonly #offer: Offer

  constructor(running: RunningWorkflows, offer: Offer) {
    this.#running = running
    this.#offer = offer
  }

  /**
   * Undefined where the client has nothing to come back to. The answer becomes a stream, which it can come back to, as soon as it cannot be an
   * HTTP error any more that leads to a login.
   */
  note(session: VirtualSession, { requestId, reply, call }: Running): { readonly journal: WorkflowJournal; end(): void } | undefined {
    const stream = reply.reserve()?.id
    const onLost = () => call.abandon('another replica has reported it as interrupted')
    const workflow = stream === undefined ? undefined : this.#running.open({ session, requestId, stream, onLost })
    if (workflow === undefined) return undefined
    const step = async (id: string, hasRun: boolean) => {
      await workflow.step(id)
      if (hasRun || !this.#offer.roster.isPerCaller) reply.openStream()
    }
    return { journal: { begin: () => workflow.begin(), step }, end: () => this.#running.end(workflow) }
  }

  /** Answers a client that has come back to the stream of a workflow at another replica. False: it is of none. */
  async tell(session: VirtualSession, exchange: Exchange, lastEventId: string): Promise<boolean> {
    if (session.outlet.knows(lastEventId)) return false
    const left = await this.#find(session, exchange, lastEventId)
    if (left === undefined) return false
    if (exchange.closed) return true
    if (left === 'running') session.outlet.comeAgain(exchange, lastEventId, COME_AGAIN_MS)
    else if (isRejection(left)) sendRejection(exchange, left)
    else {
      const error = reject('workflow_interrupted', { data: { mayHaveRun: left.mayHaveRun } })
      session.outlet.conclude(exchange, serialise(responseOf(error, left.requestId)))
    }
    return true
  }

  async #find(session: VirtualSession, exchange: Exchange, eventId: string): Promise<LeftWorkflow | Rejection | undefined> {
    try {
      return await this.#running.find(session, eventId, () => exchange.closed)
    } catch (error) {
      this.#offer.log.error('cannot look for the workflow of a stream', { error: errorMessage(error) })
      return unavailable('sessions cannot be read now')
    }
  }
}
