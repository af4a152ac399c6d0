// Tools as methods of a class: one method, called natively and as XML. Decorators are standard ones;
// compile with tsc or esbuild (Node does not run them yet).
import { createRegistry, openapi, xml } from "callgate";

class NotesTool {
  readonly notes: string[] = [];
  readonly author: string;

  constructor(options: { readonly author: string }) {
    this.author = options.author;
  }

  @openapi({ description: "Write a note.", parameters: { title: "its title", body: "its text" } })
  @xml({
    tag: "write-note",
    attributes: ["title"],
    content: "body",
    example: '<write-note title="Today">Sunny.</write-note>',
  })
  write_note({ title, body }: { title: string; body: string }) {
    this.notes.push(title);
    return `${this.author} wrote "${title}" (${body.length} characters, ${this.notes.length} notes)`;
  }

  @openapi({ description: "List the notes.", parameters: {} })
  list_notes() {
    return this.notes.join(", ") || "none yet";
  }
}

const registry = createRegistry().register(NotesTool, { with: { author: "Ada" } });
console.log(registry.openapiSchemas().map((schema) => schema.function.name));
console.log(registry.xmlExamples());
console.log(registry.find("write_note") === registry.findByTag("write-note"));
