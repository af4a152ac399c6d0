/** Two tenants: nothing of one is seen, answered, changed or counted by the other, over every route of the table. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { toSchema } from "../../src/schema/schema.ts";
import { toOpenApi } from "../../src/serve/openapi.ts";
import { routes } from "../../src/serve/routes.ts";
import { startTestService, untilStatus, type TestService, type TestServiceOptions } from "./service.ts";

export function tenantLaws(name: string, backing: () => Promise<Partial<TestServiceOptions>>): void {
  describe(name, () => {
    let service: TestService;
    let id: string;
    let callId: string;
    let hash: string;
    let tokenId: string;

    beforeAll(async () => {
      service = await startTestService({
        ...(await backing()),
        steps: [{ calls: [{ name: "deploy", input: { text: "secret-of-a" } }] }],
      });
      const owner = await service.client("a");
      ({ id } = await owner.create({ title: "secret-of-a" }));
      await owner.send(id, { text: "secret-of-a" });
      await untilStatus(owner, id, "waiting");
      const { request } = (await owner.approvals())[0]!;
      ({ hash } = request);
      callId = request.call.id;
      const token = await service.token("a");
      const tokens = (await (await ask("GET", "/v1/tokens", token)).json()) as { tokens: { id: string }[] };
      tokenId = tokens.tokens[0]!.id;
    });
    afterAll(() => service.close());

    function ask(method: string, path: string, token: string, body?: unknown): Promise<Response> {
      return fetch(`${service.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(10_000),
      });
    }

    /** A body that the owner's request would be taken with. */
    const bodies: Readonly<Record<string, () => unknown>> = {
      "/v1/sessions": () => ({}),
      "/v1/sessions/:id/messages": () => ({ text: "hello" }),
      "/v1/sessions/:id/approvals/:callId": () => ({ answer: "once", hash }),
      "/v1/sessions/:id/cancel": () => ({}),
      "/v1/sessions/:id/undo": () => ({}),
      "/v1/policy/check": () => ({ shell: "ls" }),
      "/v1/tokens": () => ({ name: "x", roles: ["watch"] }),
    };

    test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))("%s", async (_name, route) => {
      const stranger = await service.token("b");
      const own = route.path.startsWith("/v1/tokens") ? tokenId : id;
      const path = route.path.replace(":id", own).replace(":callId", encodeURIComponent(callId));
      const before = await service.store.read(id, -1);
      const response = await ask(
        route.method,
        path,
        stranger,
        route.body === undefined ? undefined : bodies[route.path]!(),
      );
      if (route.path.includes(":id")) expect(response.status).toBe(404);
      else expect(response.status).toBeLessThan(300);
      if (!route.isStream) {
        const text = await response.text();
        for (const secret of ["secret-of-a", id, hash]) expect(text).not.toContain(secret);
      } else await response.body?.cancel();
      expect(await service.store.read(id, -1)).toEqual(before);
      expect(await service.store.mail(id)).toEqual([]);
      expect(service.ran).toEqual([]);
    });

    test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
      "%s needs its role, and a token at all",
      async (_name, route) => {
        const others = (["watch", "talk", "approve", "administer"] as const).filter((role) => role !== route.role);
        const path = route.path.replace(":id", id).replace(":callId", callId);
        const body = route.body === undefined ? undefined : bodies[route.path]!();
        expect((await ask(route.method, path, await service.token("a", others), body)).status).toBe(403);
        expect((await ask(route.method, path, "nothing", body)).status).toBe(401);
      },
    );

    test("figures about the whole service are the operator's", async () => {
      expect((await ask("GET", "/metrics", await service.token("b"))).status).toBe(403);
      expect((await ask("GET", "/metrics", await service.token("main"))).status).toBe(200);
    });

    test("what is answered is what the description says, and a wrong method is told the right ones", async () => {
      const owner = await service.token("a", ["watch", "talk", "approve", "administer"]);
      for (const route of routes.filter(({ isStream, path }) => !isStream && !path.endsWith("/export"))) {
        const isJson = Object.keys(route.answers).every((status) => status !== "204");
        const isLook = route.path === "/v1/tools" || route.path === "/v1/rules" || route.path === "/v1/policy/check";
        if (isJson && !isLook) expect(route.answer, `${route.method} ${route.path}`).toBeDefined();
        if (route.method !== "GET" || route.answer === undefined) continue;
        const response = await ask("GET", route.path.replace(":id", id), owner);
        expect(response.status).toBe(200);
        const checked = await toSchema(route.answer).validate((await response.json()) as Json);
        expect(checked.ok ? [] : checked.issues, route.path).toEqual([]);
      }
      const made = await ask("POST", "/v1/sessions", await service.token("c"), {});
      const checked = await toSchema(
        routes.find(({ summary }) => summary.startsWith("A new session"))!.answer!,
      ).validate((await made.json()) as Json);
      expect(checked.ok).toBe(true);
      const wrong = await ask("DELETE", "/v1/sessions", owner);
      expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, POST"]);
    });

    test("the description of the API has every route, with its body and its parameters", async () => {
      const served = (await (await fetch(`${service.url}/openapi.json`)).json()) as ReturnType<typeof toOpenApi>;
      expect(served).toEqual(JSON.parse(JSON.stringify(toOpenApi("0.0.0"))));
      const paths = served["paths"] as Record<string, Record<string, { parameters: { name: string }[] }>>;
      for (const { method, path } of routes) {
        const operation = paths[path.replaceAll(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
        expect(operation, `${method} ${path}`).toBeDefined();
        for (const [, name] of path.matchAll(/:(\w+)/g))
          expect(operation!.parameters.map((parameter) => parameter.name)).toContain(name);
      }
      const ids = Object.values(paths).flatMap((path) =>
        Object.values(path).map((one) => (one as unknown as { operationId: string }).operationId),
      );
      expect(new Set(ids).size).toBe(ids.length);
    });
  });
}
