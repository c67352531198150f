import { writeFile } from 'node:fs/promises'

const WORDS = ['browser', 'files', 'weather', 'calendar', 'payments', 'search', 'issues', 'logs', 'maps', 'notes', 'mail', 'tickets']
const TOOLS = ['list', 'get', 'create', 'update', 'delete', 'search', 'export', 'watch']

export interface SampleOptions {
  /** Servers whose number is below this have another description. */
  readonly changed?: number
}

/** A registry file in the upstream format with documents of about the size that public servers have. */
export async function writeSampleRegistry(path: string, count: number, { changed = 0 }: SampleOptions = {}): Promise<void> {
  const servers = Array.from({ length: count }, (_, number) => JSON.stringify(server(number, number < changed)))
  const head = '{"version":"1.0.0","meta":{"last_updated":"2026-01-01T00:00:00Z"},"data":{"servers":['
  await writeFile(path, `${head}${servers.join(',\n')}]}}\n`)
}

export function sampleName(number: number): string {
  return `io.github.team-${number % 997}/${word(number)}-server-${number}`
}

export const SAMPLE_VERSION = '1.4.2'
export const CHANGED_MARK = 'Now with more'

function server(number: number, isChanged: boolean): unknown {
  const name = sampleName(number)
  const subject = `${word(number)} and ${word(number * 7 + 3)}`
  const tools = TOOLS.slice(0, 3 + (number % 6)).map((verb) => `${verb}_${word(number)}`)
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    title: `${word(number)} ${number}`,
    description: `${isChanged ? `${CHANGED_MARK}: works` : 'Works'} with ${subject} of team ${number % 997}`,
    repository: { url: `https://github.com/team-${number % 997}/${word(number)}-server-${number}`, source: 'github' },
    version: SAMPLE_VERSION,
    packages: [
      {
        registryType: 'npm',
        identifier: `@team-${number % 997}/${word(number)}-server-${number}`,
        version: SAMPLE_VERSION,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        environmentVariables: [
          { name: 'API_KEY', description: 'Key of the service that it talks to', isRequired: true, isSecret: true },
          { name: 'BASE_URL', description: 'Address of the service', default: 'https://api.example.com' },
        ],
      },
    ],
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': {
        'io.github.stacklok': { [name]: { status: 'active', tier: 'Community', tags: [word(number), word(number + 1)], tools } },
      },
    },
  }
}

function word(number: number): string {
  return WORDS[number % WORDS.length] ?? ''
}
