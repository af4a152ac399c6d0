"use client";
import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

export default function Page() {
  const { messages, sendMessage, addToolApprovalResponse } = useChat({
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return (
    <main>
      {messages.flatMap(({ id, parts }) =>
        parts.map((part, index) => {
          const key = `${id}-${index}`;
          if (part.type === "text") return <p key={key}>{part.text}</p>;
          if (part.type !== "dynamic-tool" || part.state !== "approval-requested") return null;
          const answer = (approved: boolean) => addToolApprovalResponse({ id: part.approval.id, approved });
          return (
            <p key={key}>
              {part.toolName} {JSON.stringify(part.input)}
              <button onClick={() => answer(true)}>Yes</button>
              <button onClick={() => answer(false)}>No</button>
            </p>
          );
        }),
      )}
      <form action={(form) => sendMessage({ text: String(form.get("text")) })}>
        <input name="text" />
      </form>
    </main>
  );
}
