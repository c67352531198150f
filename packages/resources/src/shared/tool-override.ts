import { bool, obj, opt, str } from '../schema/nodes.ts'

/** The hints of an MCP tool. */
export const toolAnnotations = (description: string) =>
  obj(description, {
    title: opt(str('Title shown to people.', { maxLength: 1024 })),
    readOnlyHint: opt(bool('Whether the tool changes nothing.')),
    destructiveHint: opt(bool('Whether the tool may destroy something.')),
    idempotentHint: opt(bool('Whether calling twice is the same as calling once.')),
    openWorldHint: opt(bool('Whether the tool reaches beyond a closed domain.')),
  })

/** How clients see a tool instead of what the server says. */
export const toolOverride = () =>
  obj(
    'Presentation of this tool to clients.',
    {
      name: opt(str('New name of the tool.', { minLength: 1, maxLength: 256 })),
      description: opt(str('New description of the tool.', { minLength: 1, maxLength: 16384 })),
      annotations: opt(toolAnnotations('Hints that replace those of the server, one by one.')),
    },
    {
      rules: [
        {
          rule: 'has(self.name) || has(self.description) || has(self.annotations)',
          message: 'an override must set at least one of name, description and annotations',
        },
      ],
    },
  )
