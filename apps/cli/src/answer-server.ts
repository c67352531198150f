import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { ClientHandler, ClientHandlers } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { ProgramEnv } from './program.ts'
import { propertySchema, typeText, ValueProblem, valueFor } from './schema-value.ts'
import { plainText } from './text/plain-text.ts'

/** Only this is offered. A server that asks for more gets a refusal, and the user a line about it. */
export const OFFERED: JsonObject = { elicitation: {} }

/** Answers what a server asks in the middle of a call: the user fills in forms on a terminal, everything else is declined. */
export function serverHandlers(env: ProgramEnv): ClientHandlers {
  return { elicitation: elicitationHandler(env), sampling: samplingHandler(env) }
}

function samplingHandler(env: ProgramEnv): ClientHandler {
  return () => {
    env.err('Declined a sampling request: thv has no language model.\n')
    throw new McpErrorResponse({ code: -1, message: 'The user declined the sampling request' })
  }
}

function elicitationHandler(env: ProgramEnv): ClientHandler {
  /** One form at a time: a terminal has one line to type on. */
  let last: Promise<unknown> = Promise.resolve()
  return (params, { signal }) => {
    const { ask } = env
    const message = plainText(params['message']) || 'something'
    if (params['mode'] === 'url')
      return declined(env, `The server asks to visit ${plainText(params['url'])} (${message}); thv cannot follow that, so it was declined.`)
    if (!ask) return declined(env, `The server asks: ${message} Declined, as there is no terminal to ask on.`)
    const form = last.then(() => fillIn(params, { ask: (question) => ask(question, signal), err: env.err, message }))
    last = form.catch(() => {})
    return form
  }
}

function declined(env: ProgramEnv, line: string): JsonObject {
  env.err(`${line}\n`)
  return { action: 'decline' }
}

interface Form {
  /** Undefined when the user ended the input. */
  ask(question: string): Promise<string | undefined>
  err(text: string): void
  readonly message: string
}

async function fillIn(params: JsonObject, form: Form): Promise<JsonObject> {
  const schema = isObject(params['requestedSchema']) ? params['requestedSchema'] : {}
  const consent = await form.ask(`The server asks: ${form.message}\nAnswer it? [Y/n] `)
  if (consent === undefined) return { action: 'cancel' }
  if (/^n/i.test(consent.trim())) return { action: 'decline' }
  const content: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(isObject(schema['properties']) ? schema['properties'] : {})) {
    const found = await askField({ name, root: schema, schema: propertySchema(schema, property) }, form)
    if (found === undefined) return { action: 'cancel' }
    if (found.value !== undefined) content[name] = found.value
  }
  return { action: 'accept', content }
}

interface Field {
  readonly name: string
  readonly root: JsonObject
  readonly schema: JsonObject
}

/** Asks until the answer fits. Nothing typed is the default, or nothing where nothing is needed. */
async function askField({ name, root, schema }: Field, form: Form): Promise<{ value: unknown } | undefined> {
  const isRequired = Array.isArray(root['required']) && root['required'].includes(name)
  const hint = 'default' in schema ? ` [${JSON.stringify(schema['default'])}]` : isRequired ? '' : ' (optional)'
  const label = plainText(schema['title'] ?? schema['description'])
  const question = `  ${plainText(name)}${label === '' ? '' : ` (${label})`}, ${plainText(typeText(root, schema))}${hint}: `
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const typed = await form.ask(question)
    if (typed === undefined) return undefined
    if (typed === '' && ('default' in schema || !isRequired)) return { value: schema['default'] }
    try {
      return { value: valueFor(root, schema, typed) }
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error
      form.err(`  It ${error.message}.\n`)
    }
  }
  return undefined
}

const MAX_ATTEMPTS = 5
