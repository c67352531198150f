import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundledProgramFiles, filesBelow } from './bundled-program.ts'
import { type WrittenImage, writeImageArchive } from './image-archive.ts'
import { file, imageUser, nodeRuntimeFiles } from './node-runtime.ts'

export const fixtureImage = 'mcp-fixture:1'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const everything = 'node_modules/@modelcontextprotocol/server-everything/dist'

/**
 * MCP servers for tests on a node. The fixture is what runs by default, over what MCP_TRANSPORT, MCP_PORT and MCP_HOST say;
 * `mcp-server-everything [stdio|sse|streamableHttp]` is the protocol's own example, whose port is in PORT.
 */
export async function writeFixtureImage(output: string, tag: string = fixtureImage): Promise<WrittenImage> {
  const programs = await bundledProgramFiles([
    { name: 'mcp-fixture', entry: 'packages/testkit/src/mcp/fixture-image-main.ts' },
    { name: 'mcp-server-everything', entry: `${everything}/index.js` },
  ])
  // The example looks for its texts beside the folder of its program.
  const docs = filesBelow(join(root, everything, 'docs')).map((path) =>
    file(`docs/${path.slice(join(root, everything, 'docs/').length)}`, path),
  )
  return writeImageArchive(output, {
    tags: [tag],
    files: [...nodeRuntimeFiles(join(root, 'node_modules/.bin/node')), ...programs, ...docs],
    config: {
      User: imageUser,
      Env: ['PATH=/usr/local/bin', 'NODE_ENV=production'],
      Entrypoint: ['mcp-fixture'],
      WorkingDir: '/home/thv',
    },
  })
}
