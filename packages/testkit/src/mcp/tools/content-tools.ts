import type { Tool } from '../features/call.ts'
import { errorResult, imageBlock, jsonResult, resourceBlock, textBlock, textResult, WAV } from '../features/content.ts'
import { INTEGER, inputs, numberArg, STRING, stringArg } from './arguments.ts'

/** Every kind of content a result may hold. `add_numbers` sorts first: the suite calls the first listed tool without arguments. */
export const CONTENT_TOOLS: readonly Tool[] = [
  {
    name: 'add_numbers',
    title: 'Add two numbers',
    description: 'Adds two numbers; a missing one is 0',
    inputSchema: inputs({ a: { type: 'number' }, b: { type: 'number' } }),
    annotations: { readOnlyHint: true },
    run: ({ args }) => textResult(String(numberArg(args, 'a', 0) + numberArg(args, 'b', 0))),
  },
  {
    name: 'greet',
    description: 'Greets by name',
    inputSchema: inputs({ name: STRING }),
    run: ({ args }) => textResult(`Hello, ${stringArg(args, 'name', 'World')}!`),
  },
  {
    name: 'structured_point',
    description: 'Returns structured content that fits an output schema',
    inputSchema: inputs({ x: INTEGER, y: INTEGER }),
    outputSchema: { type: 'object', properties: { x: INTEGER, y: INTEGER }, required: ['x', 'y'] },
    run: ({ args }) => jsonResult({ x: numberArg(args, 'x', 1), y: numberArg(args, 'y', 2) }),
  },
  {
    name: 'structured_list',
    description: 'Returns structured content that is no object, which only the modern revision allows',
    era: 'modern',
    inputSchema: inputs({ count: INTEGER }),
    outputSchema: { type: 'array', items: INTEGER },
    run: ({ args }) => ({ content: [], structuredContent: Array.from({ length: numberArg(args, 'count', 3) }, (_, index) => index) }),
  },
  {
    name: 'test_audio_content',
    description: 'Returns audio',
    inputSchema: inputs(),
    run: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  },
  {
    name: 'test_embedded_resource',
    description: 'Returns an embedded resource',
    inputSchema: inputs(),
    run: () => ({ content: [resourceBlock('test://embedded-resource', 'This is an embedded resource content.')] }),
  },
  {
    name: 'test_error_handling',
    description: 'Always fails, as a tool fails: with a result',
    inputSchema: inputs(),
    run: () => errorResult('This tool intentionally returns an error for testing'),
  },
  { name: 'test_image_content', description: 'Returns a picture', inputSchema: inputs(), run: () => ({ content: [imageBlock()] }) },
  {
    name: 'test_multiple_content_types',
    description: 'Returns text, a picture and a resource',
    inputSchema: inputs(),
    run: () => ({
      content: [textBlock('Multiple content types test:'), imageBlock(), resourceBlock('test://mixed-content-resource', '{"test":"data"}')],
    }),
  },
  {
    name: 'test_resource_link',
    description: 'Returns a link to a resource',
    inputSchema: inputs(),
    run: () => ({ content: [{ type: 'resource_link', uri: 'test://static-text', name: 'static-text' }] }),
  },
  {
    name: 'test_simple_text',
    description: 'Returns text',
    inputSchema: inputs(),
    run: () => textResult('This is a simple text response for testing.'),
  },
]
