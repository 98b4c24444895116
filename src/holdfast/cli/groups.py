"""Groups of commands: their help, and what a mistyped command is answered."""

from __future__ import annotations

import click

from holdfast.meta.suggestions import nearest


class Group(click.Group):
    """A group of commands whose list of commands is not cut, and which says what there is instead of a wrong one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(limit=1000)) for name, each in found if each is not None]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # A command may be there without being listed.
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            close = nearest(args[0], known)
            hint = f"the commands are {', '.join(known)}" if close is None else f"did you mean {close}?"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
