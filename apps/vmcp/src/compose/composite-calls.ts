import type { Identity } from '@thv/auth/incoming/authenticator'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { errorObjectOf, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { WorkflowFeed } from '@thv/middleware/audit/workflow-event'
import { withoutLinks } from '@thv/telemetry/redact'
import { runWorkflow, type WorkflowOutcome } from '@thv/workflow/run-workflow'
import type { Answer, Question, WorkflowHost } from '@thv/workflow/workflow-host'
import { WorkflowSlots } from '@thv/workflow/workflow-slots'
import type { Route } from '../aggregate/aggregate.ts'
import { joinChallenges } from '../members/login-challenge.ts'
import type { RunningWork } from '../route/virtual-call.ts'
import { certainTools } from './certain-tools.ts'
import type { CompositeOffer } from './composite-offers.ts'
import { callStepTool, type StepClients, type StepDeps, StepNeedsLogin } from './step-call.ts'
import type { Belonging, Suspension, WaitingWorkflows } from './suspended-workflows.ts'

export type { ToolLimits } from './step-call.ts'

export interface CompositeCallsOptions extends StepDeps {
  maxParallelSteps(): number
  readonly waiting: WaitingWorkflows
  /** The tool as it can run now. */
  offered(name: string): CompositeOffer | undefined
  /** Whether the client may call the tool of a step itself, where steps are judged. */
  mayCall(identity: Identity | undefined, route: Route, args: JsonObject): boolean
  /** For the audit log. */
  readonly events: Pick<WorkflowFeed, 'report'>
}

/** The client that called a composite tool. */
export interface CompositeClient extends StepClients {
  readonly principal: string
  readonly party: string
  readonly identity: Identity | undefined
  /** How it is asked: on its stream, by a result that it answers with its next request, or not at all. */
  readonly asks: 'no' | 'input_required' | ((params: JsonObject, signal: AbortSignal) => Promise<JsonObject>)
  readonly journal?: WorkflowJournal | undefined
}

/** Notes what may have run, for when this replica is gone. It holds up a step, and never fails one. */
export interface WorkflowJournal {
  begin(): Promise<void>
  /** `hasRun`: a step before has, so that the answer leads to no login any more. */
  step(id: string, hasRun: boolean): Promise<void>
}

export interface CompositeRequest {
  readonly offer: CompositeOffer
  readonly params: JsonObject
  readonly client: CompositeClient
}

const MAX_DETAIL = 1_000

/** Calls of composite tools, of clients of both eras. */
export class CompositeCalls {
  readonly #options: CompositeCallsOptions
  readonly #slots = new WorkflowSlots()
  readonly #suspended: WaitingWorkflows

  constructor(options: CompositeCallsOptions) {
    this.#options = options
    this.#suspended = options.waiting
  }

  /** The composite tool of a call, if it calls one. */
  find(method: string, { name }: JsonObject): CompositeOffer | undefined {
    return method === METHODS.toolsCall && typeof name === 'string' ? this.#options.offered(name) : undefined
  }

  /** Runs the workflow to its end, or to its next question. Rejects with the reason of the signal only. */
  async run(request: CompositeRequest, running: RunningWork): Promise<JsonObject | Rejection> {
    const { offer, params, client } = request
    const { arguments: args = {}, requestState, inputResponses } = params
    if (!isObject(args)) return reject('invalid_params', { detail: 'arguments must be an object' })
    const belonging = { principal: client.principal, party: client.party, tool: offer.name, arguments: args }
    const free = this.#slots.take(client.party)
    if (free === undefined) return busy()
    try {
      const kept = requestState === undefined ? undefined : await this.#suspended.take(belonging, requestState)
      if (requestState !== undefined && kept === undefined)
        return reject('invalid_params', { detail: 'requestState is not valid', data: { reason: 'expired' } })
      const answers = kept && answersOf(Object.keys(kept.inputRequests), kept.state.questions, inputResponses)
      if (kept !== undefined && answers === undefined) return await this.#asked(belonging, kept, kept.until)
      const challenge = kept === undefined ? await this.#missingLogins(offer) : undefined
      if (challenge !== undefined) return challenge
      const logins: StepLogins = { called: 0, hasRun: false, challenges: [] }
      await client.journal?.begin()
      const outcome = await runWorkflow(offer.workflow, {
        ...{ host: this.#host(request, running, logins), params: args as never, signal: running.signal },
        maxParallelSteps: this.#options.maxParallelSteps(),
        asks: client.asks === 'input_required' ? 'suspend' : 'wait',
        ...(kept && { resume: { state: kept.state, answers: answers ?? {} } }),
      })
      // A client repeats the whole call after the login, so nothing may have run yet, in this round or in one before it.
      const hasRun = kept !== undefined || logins.called > 0
      const late = outcome.kind === 'failed' && !hasRun ? joinChallenges(logins.challenges) : undefined
      return late ?? (await this.#answer(request, belonging, outcome))
    } finally {
      free()
    }
  }

  async close(): Promise<void> {
    await this.#suspended.close()
  }

  async #answer({ offer }: CompositeRequest, belonging: Belonging, outcome: WorkflowOutcome): Promise<JsonObject | Rejection> {
    switch (outcome.kind) {
      case 'completed':
        return { ...outcome.result }
      case 'invalid_params':
        return reject('invalid_params', { detail: outcome.problems.join('; ').slice(0, MAX_DETAIL) })
      case 'failed':
        this.#options.log.warn('a composite tool failed', { tool: offer.name, step: outcome.step, error: withoutLinks(outcome.message) })
        return { ...outcome.result }
      default: {
        const inputRequests = Object.fromEntries(
          outcome.questions.map((question, index) => [
            `elicitation-${index + 1}`,
            { method: METHODS.elicit, params: { mode: 'form', ...elicitation(question) } },
          ]),
        )
        return await this.#asked(belonging, { state: outcome.state, inputRequests })
      }
    }
  }

  async #asked(belonging: Belonging, { state, inputRequests }: Suspension, until?: number) {
    const requestState = await this.#suspended.keep(belonging, { state, inputRequests }, until)
    return requestState === undefined ? busy() : { resultType: 'input_required', inputRequests, requestState }
  }

  /** Asked for before the first step, so that no step has run when the client repeats the call after the login. */
  async #missingLogins({ workflow, targets }: CompositeOffer): Promise<Rejection | undefined> {
    const routes = certainTools(workflow).flatMap((tool) => targets.get(tool) ?? [])
    const backends = new Set(routes.flatMap(({ selector, backend }) => (selector === undefined ? [backend] : [])))
    const found = await Promise.all([...backends].map((backend) => this.#options.member(backend)?.missingLogin()))
    return joinChallenges(found.filter((challenge) => challenge !== undefined))
  }

  #host({ offer, client }: CompositeRequest, { progress }: RunningWork, logins: StepLogins): WorkflowHost {
    const { asks } = client
    // The view may change while the workflow runs: each step asks it again.
    const routeOf = (tool: string) => this.#options.offered(offer.name)?.targets.get(tool)
    return {
      clock: this.#options.clock,
      callTool: async (call, signal) => {
        const route = routeOf(call.tool)
        if (route !== undefined && !this.#options.mayCall(client.identity, route, call.arguments)) {
          this.#options.log.info('a step is not permitted', { tool: offer.name, step: call.step })
          throw new Error(DENIED)
        }
        if (client.journal !== undefined) {
          await client.journal.step(call.step, logins.hasRun)
          signal.throwIfAborted()
        }
        logins.called++
        try {
          const result = await callStepTool(this.#options, { call, route, clients: client }, signal)
          logins.hasRun = true
          return result
        } catch (error) {
          if (error instanceof StepNeedsLogin) {
            logins.called--
            logins.challenges.push(error.challenge)
          } else logins.hasRun = true
          throw error
        }
      },
      inputSchema: (tool) => {
        const schema = routeOf(tool)?.item['inputSchema']
        return isObject(schema) ? (schema as never) : undefined
      },
      progress: (done, total) => progress({ progress: done, total }),
      observe: (event) => this.#options.events.report({ ...event, tool: offer.name, identity: client.identity }),
      ...(typeof asks === 'function' && {
        elicit: async (question: Question, signal: AbortSignal) => answerOf(await asks(elicitation(question), signal)) ?? CANCEL,
      }),
    }
  }
}

/** Logins that steps of one run lacked. */
interface StepLogins {
  /** Calls that went to a backend. */
  called: number
  /** One of them has ended. */
  hasRun: boolean
  readonly challenges: Rejection[]
}

/** The text of a call that is denied. */
const DENIED = errorObjectOf(reject('access_denied')).message

const CANCEL: Answer = { action: 'cancel' }

function elicitation({ message, schema }: Question): JsonObject {
  return { message, requestedSchema: schema }
}

/** The answers by step; undefined while one is missing. */
function answersOf(keys: readonly string[], steps: readonly string[], responses: unknown): Record<string, Answer> | undefined {
  const found = keys.map((key) => (isObject(responses) && Object.hasOwn(responses, key) ? answerOf(responses[key]) : undefined))
  if (found.includes(undefined)) return undefined
  return Object.fromEntries(steps.map((step, index) => [step, found[index] ?? CANCEL]))
}

function answerOf(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined
  const { action, content } = value
  if (action !== 'accept' && action !== 'decline' && action !== 'cancel') return undefined
  return { action, ...(isObject(content) && { content: content as never }) }
}

function busy(): Rejection {
  return reject('internal_error', { detail: 'too many composite tools run at a time', data: { reason: 'busy' } })
}
