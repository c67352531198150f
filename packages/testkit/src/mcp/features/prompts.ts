import { INVALID_PARAMS, type JsonObject, objectOf, RpcError } from '../wire/json-rpc.ts'
import type { Call } from './call.ts'
import { imageBlock, resourceBlock, textBlock } from './content.ts'
import { elicit } from './input-requests.ts'

interface Prompt {
  readonly name: string
  readonly description: string
  readonly arguments?: readonly JsonObject[]
  messages(call: Call): Promise<JsonObject[]> | JsonObject[]
}

const PROMPTS: readonly Prompt[] = [
  {
    name: 'test_input_required_result_prompt',
    description: 'Asks the client for a context before it answers',
    messages: async (call) => {
      const { user_context } = await call.ask({ user_context: elicit('What is the context?', { context: { type: 'string' } }) })
      return [userMessage(textBlock(`Context: ${objectOf(user_context?.['content'])['context'] ?? 'none'}`))]
    },
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'Repeats its two arguments',
    arguments: [argument('arg1', 'First argument'), argument('arg2', 'Second argument')],
    messages: ({ args }) => [userMessage(textBlock(`Prompt with arguments: arg1='${args['arg1']}', arg2='${args['arg2']}'`))],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'Holds a resource',
    arguments: [argument('resourceUri', 'URI of the resource')],
    messages: ({ args }) => [
      userMessage(resourceBlock(String(args['resourceUri'] ?? 'test://static-text'), 'Embedded resource content for testing.')),
      userMessage(textBlock('Please process the embedded resource above.')),
    ],
  },
  {
    name: 'test_prompt_with_image',
    description: 'Holds a picture',
    messages: () => [userMessage(imageBlock()), userMessage(textBlock('Please look at the picture above.'))],
  },
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments',
    messages: () => [userMessage(textBlock('This is a simple prompt.'))],
  },
]

export function listPrompts(): JsonObject[] {
  return PROMPTS.map(({ messages, ...listed }) => listed)
}

export async function getPrompt(call: Call): Promise<JsonObject> {
  const prompt = PROMPTS.find(({ name }) => name === call.params['name'])
  if (!prompt) throw new RpcError(INVALID_PARAMS, `Unknown prompt: ${String(call.params['name'])}`)
  return { description: prompt.description, messages: await prompt.messages(call) }
}

const WORDS = ['paris', 'park', 'party', 'oslo']

/** Offers words with the given beginning; a `ref` of an unknown type is -32602. */
export function complete(params: JsonObject): JsonObject {
  const ref = objectOf(params['ref'])
  if (ref['type'] !== 'ref/prompt' && ref['type'] !== 'ref/resource') throw new RpcError(INVALID_PARAMS, 'Unknown kind of reference')
  const value = String(objectOf(params['argument'])['value'] ?? '')
  const values = WORDS.filter((word) => word.startsWith(value))
  return { completion: { values, total: values.length, hasMore: false } }
}

function userMessage(content: JsonObject): JsonObject {
  return { role: 'user', content }
}

function argument(name: string, description: string): JsonObject {
  return { name, description, required: true }
}
