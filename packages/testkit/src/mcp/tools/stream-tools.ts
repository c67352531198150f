import type { Tool } from '../features/call.ts'
import { textResult } from '../features/content.ts'
import { WATCHED } from '../features/resources.ts'
import { inputs, STRING, stringArg } from './arguments.ts'
import { sleep } from './sleep.ts'

const GAP_MS = 50

/** Tools that speak before they answer, and tools that make lists and resources change. */
export const STREAM_TOOLS: readonly Tool[] = [
  logging('test_tool_with_logging', 'Sends three log messages while it works'),
  logging('test_logging_tool', 'Sends log messages to a client that asked for them'),
  {
    name: 'test_tool_with_progress',
    description: 'Reports progress 0, 50 and 100',
    inputSchema: inputs(),
    run: async (call) => {
      for (const progress of [0, 50, 100]) {
        call.progress(progress, 100)
        await sleep(GAP_MS, call.signal)
      }
      return textResult('Done')
    },
  },
  {
    name: 'test_reconnection',
    description: 'Ends the connection before it answers: the client must come back for the rest',
    inputSchema: inputs(),
    run: async (call) => {
      call.channel.pause(500)
      await sleep(GAP_MS, call.signal)
      return textResult('Reconnection test completed successfully.')
    },
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Announces that the list of tools has changed',
    inputSchema: inputs(),
    run: ({ world }) => {
      world.changes.emit({ kind: 'list', list: 'tools' })
      return textResult('announced')
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Announces that the list of prompts has changed',
    inputSchema: inputs(),
    run: ({ world }) => {
      world.changes.emit({ kind: 'list', list: 'prompts' })
      return textResult('announced')
    },
  },
  {
    name: 'touch_resource',
    description: 'Announces that a resource has changed',
    inputSchema: inputs({ uri: STRING }),
    run: ({ world, args }) => {
      world.changes.emit({ kind: 'resource', uri: stringArg(args, 'uri', WATCHED) })
      return textResult('announced')
    },
  },
]

function logging(name: string, description: string): Tool {
  return {
    name,
    description,
    inputSchema: inputs(),
    run: async (call) => {
      for (const text of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        call.log('info', text)
        await sleep(GAP_MS, call.signal)
      }
      return textResult('Done')
    },
  }
}
